import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { apiKeysSchema, revocationSchema, revokedApiKeysSchema } from '#contract/console/api-keys.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

describe('revoking API keys', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock('2026-11-21T09:00:00.000Z');
    const harness = openOnce(() => openCore({ kind, clock }));
    let cookie: string;

    beforeEach(async () => {
      cookie = await signIn(harness.core.url, 'ada@example.com');
    });
    // Revokes what the test has left.
    afterEach(async () => {
      const ids = (await list()).apiKeys.map(({ id }) => id);
      if (ids.length > 0) await revoke(ids);
    });

    const revoke = async (ids: string[], more: object = {}) => {
      const answer = await ask('POST', `${harness.core.url}/console/api-keys/revocations`, { cookie, body: { ids, ...more } });
      expect(answer.status).to.equal(200);
      return revokedApiKeysSchema.strict().parse(answer.json);
    };
    const keys = async (count: number) => {
      const created: Awaited<ReturnType<typeof createKey>>[] = [];
      for (let n = 0; n < count; n++) created.push(await createKey(harness.core.url, cookie, `key ${n}`));
      return created;
    };
    const list = async () => apiKeysSchema.parse((await ask('GET', `${harness.core.url}/console/api-keys`, { cookie })).json);

    describe('several in one request', () => {
      it("takes effect at the next request with each of these keys, and doesn't affect other keys", async () => {
        const [one, two, three] = await keys(3);
        const ids = [one?.id ?? '', two?.id ?? ''];
        expect(await revoke(ids)).to.deep.equal({ revoked: ids, gone: [] });
        const statuses = await Promise.all(
          [one, two, three].map(
            async (key) => (await placeCall(harness.core.url, harness.tenants.campaign.id, key?.keyValue ?? '')).status,
          ),
        );
        expect(statuses).to.deep.equal([401, 401, 202]);
        expect((await list()).total).to.equal(1);
      });

      it('reports invisible, revoked and unknown keys as gone, and revokes the others', async () => {
        const [mine, before] = await keys(2);
        const others = await createKey(harness.core.url, await signIn(harness.core.url, 'tom@example.com'));
        await revoke([before?.id ?? '']);
        const ids = [others.id, mine?.id ?? '', before?.id ?? '', 'no-such-key'];
        expect(await revoke(ids)).to.deep.equal({ revoked: [mine?.id], gone: [others.id, before?.id, 'no-such-key'] });
        expect((await placeCall(harness.core.url, harness.tenants.campaign.id, others.keyValue)).status).to.equal(202);
      });

      it('reports a repeated ID once', async () => {
        const [one] = await keys(1);
        const id = one?.id ?? '';
        expect(await revoke([id, id, 'none', 'none'])).to.deep.equal({ revoked: [id], gone: ['none'] });
      });

      it('lets exactly one of several concurrent requests revoke each key', async () => {
        const ids = (await keys(10)).map(({ id }) => id);
        const answers = await Promise.all(Array.from({ length: 6 }, (_, n) => revoke(n % 2 ? ids : ids.toReversed())));
        expect(answers.flatMap(({ revoked }) => revoked).sort()).to.deep.equal([...ids].sort());
        for (const { revoked, gone } of answers) expect([...revoked, ...gone].sort()).to.deep.equal([...ids].sort());
      });

      it('cancels queued calls only on request', async () => {
        const [stays, goes, goesToo] = await keys(3);
        for (const key of [stays, goes, goesToo]) await placeCall(harness.core.url, harness.tenants.campaign.id, key?.keyValue ?? '');
        await revoke([stays?.id ?? '']);
        await revoke([goes?.id ?? '', goesToo?.id ?? ''], { cancelQueuedCalls: true });
        const { read } = harness.direct.storage.database;
        const calls: { api_key_id: string; state: string; detail: string | null }[] = await read('calls').select(
          'api_key_id',
          'state',
          'detail',
        );
        const states = new Map(calls.map(({ api_key_id, state }) => [api_key_id, state]));
        expect([stays, goes, goesToo].map((key) => states.get(key?.id ?? ''))).to.deep.equal(['queued', 'cancelled', 'cancelled']);
        // Both say why.
        const why = 'The API key was revoked, and its queued calls were cancelled.';
        const ids = [stays, goes, goesToo].map((key) => key?.id ?? '');
        const details = new Map(calls.map(({ api_key_id, detail }) => [api_key_id, detail]));
        expect(ids.map((id) => details.get(id))).to.deep.equal([null, why, why]);
        const revoked = read('audit_events').where({ action: 'api-key.revoked' }).whereIn('subject_id', ids);
        expect(await revoked.pluck('detail')).to.have.members([null, 'cancelled the queued calls', 'cancelled the queued calls']);
      });
    });

    describe('for a reason, which', () => {
      const readDetails = async (ids: string[]) => {
        const { json } = await ask('GET', `${harness.core.url}/console/activity?action=api-key.revoked&timeZone=UTC`, { cookie });
        const { events } = activitySchema.parse(json);
        return ids.map((id) => events.find(({ subject }) => subject.id === id)?.detail);
      };

      it('is in the activity, with its note', async () => {
        const reasons = [
          ['?reason=leaked', 'leaked'],
          ['?reason=unused&note=The%20shop%20closed', 'no longer needed: The shop closed'],
          ['?reason=other&note=A%20drill', 'A drill'],
          ['?reason=other', 'other'],
          ['?note=A%20test', 'A test'],
          ['', undefined],
        ] as const;
        const revoked = await keys(reasons.length);
        for (const [n, [query]] of reasons.entries()) {
          const url = `${harness.core.url}/console/api-keys/${revoked[n]?.id}${query}`;
          expect((await ask('DELETE', url, { cookie })).status).to.equal(204);
        }
        expect(await readDetails(revoked.map(({ id }) => id))).to.deep.equal(reasons.map(([, detail]) => detail));
      });

      it('is recorded for each of several keys that are revoked together', async () => {
        const ids = (await keys(2)).map(({ id }) => id);
        await ask('POST', `${harness.core.url}/console/api-keys/revocations`, { cookie, body: { ids, reason: 'left' } });
        expect(await readDetails(ids)).to.deep.equal(['someone left', 'someone left']);
      });

      it('must be one of the listed reasons, with a note on one line, and without an unknown parameter that it might replace', async () => {
        const { id } = await createKey(harness.core.url, cookie);
        for (const query of [
          '?reason=x',
          '?reason=other&note=A%0Adrill',
          '?cancel=true',
          '?cancelQueuedCalls=true&cancelQueuedCalls=true',
        ]) {
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
});
