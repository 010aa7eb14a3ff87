import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { revocationSchema } from '#contract/console/api-keys.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

describe('the reason for revoking a key', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock('2026-11-21T09:00:00.000Z');
    const harness = openOnce(() => openCore({ kind, clock }));
    let cookie: string;
    before(async () => {
      cookie = await signIn(harness.core.url, 'ada@example.com');
    });

    const readDetails = async (ids: string[]) => {
      const { json } = await ask('GET', `${harness.core.url}/console/activity?action=api-key.revoked&timeZone=UTC`, { cookie });
      const { events } = activitySchema.parse(json);
      return ids.map((id) => events.find(({ subject }) => subject.id === id)?.detail);
    };

    it('is in the activity, with its note', async () => {
      const revoke = async (query: string) => {
        const { id } = await createKey(harness.core.url, cookie);
        const { status } = await ask('DELETE', `${harness.core.url}/console/api-keys/${id}${query}`, { cookie });
        expect(status).to.equal(204);
        return id;
      };
      const ids = [
        await revoke('?reason=leaked'),
        await revoke('?reason=unused&note=The%20shop%20closed'),
        await revoke('?reason=other&note=A%20drill'),
        await revoke('?reason=other'),
        await revoke('?note=A%20test'),
        await revoke(''),
      ];
      expect(await readDetails(ids)).to.deep.equal([
        'leaked',
        'no longer needed: The shop closed',
        'A drill',
        'other',
        'A test',
        undefined,
      ]);
    });

    it('is recorded for each of several keys that are revoked together', async () => {
      const keys = [await createKey(harness.core.url, cookie), await createKey(harness.core.url, cookie)];
      const ids = keys.map(({ id }) => id);
      await ask('POST', `${harness.core.url}/console/api-keys/revocations`, { cookie, body: { ids, reason: 'left' } });
      expect(await readDetails(ids)).to.deep.equal(['someone left', 'someone left']);
    });

    it('must be one of the listed reasons, with a note on one line, and without an unknown parameter that it might replace', async () => {
      const { id } = await createKey(harness.core.url, cookie);
      for (const query of ['?reason=x', '?reason=other&note=A%0Adrill', '?cancel=true', '?cancelQueuedCalls=true&cancelQueuedCalls=true']) {
        const { status } = await ask('DELETE', `${harness.core.url}/console/api-keys/${id}${query}`, { cookie });
        expect([query, status]).to.deep.equal([query, 400]);
      }
      const body = { ids: [id], reason: 'other', note: '' };
      expect((await ask('POST', `${harness.core.url}/console/api-keys/revocations`, { cookie, body })).status).to.equal(422);
      expect((await ask('GET', `${harness.core.url}/console/api-keys/${id}/revocation`, { cookie })).status).to.equal(200);
    });

    async function placeFrom(address: string, key: string): Promise<void> {
      const core = await startCoreHere(harness.database, { clock, environment: { TRUSTED_PROXIES: '127.0.0.1' } });
      await ask('POST', `${core.url}/api/v1/campaigns/${harness.tenants.campaign.id}/contacts/on-demand`, {
        key,
        body: { contact: { phone: '+493012345678' } },
        headers: { 'X-Forwarded-For': address },
      });
      // This writes the use of keys that the core has collected.
      await core.close();
    }
    async function previewLastDay(id: string) {
      cookie = await signIn(harness.core.url, 'ada@example.com');
      const { json } = await ask('GET', `${harness.core.url}/console/api-keys/${id}/revocation`, { cookie });
      return revocationSchema.parse(json).lastDay;
    }

    it('is chosen after a preview of what the key placed in the last 24 hours, and from where', async () => {
      const { id, keyValue } = await createKey(harness.core.url, cookie);
      await placeFrom('192.0.2.1', keyValue);
      clock.advance({ hours: 24, minutes: 15 });
      await placeFrom('192.0.2.2', keyValue);
      clock.advance({ minutes: 1 });
      await placeFrom('2001:db8::3', keyValue);
      expect(await previewLastDay(id)).to.deep.equal({
        placed: 2,
        addresses: [
          { address: '2001:db8::3', lastUsedAt: '2026-11-22T09:16:00.000Z' },
          { address: '192.0.2.2', lastUsedAt: '2026-11-22T09:15:00.000Z' },
        ],
      });
      expect((await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue)).status).to.equal(202);
    });

    it('is chosen after a preview that includes a call placed almost 24 hours ago', async () => {
      const { id, keyValue } = await createKey(harness.core.url, cookie);
      clock.set('2026-11-23T09:10:00.000Z');
      await placeFrom('192.0.2.1', keyValue);
      clock.set('2026-11-24T09:05:00.000Z');
      expect(await previewLastDay(id)).to.deep.include({ placed: 1 });
    });
  });
});
