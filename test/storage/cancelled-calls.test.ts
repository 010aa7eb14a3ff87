import { expect } from 'chai';
import { createApiKey, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { instant } from '../../core/domain/instant.ts';
import type { Digest, NewCall, User } from '../../core/domain/model.ts';
import type { CallStore } from '../../core/domain/ports/calls.ts';
import { callStore } from '../../core/storage/calls/calls.ts';
import type { Database } from '../../core/storage/engine/database.ts';
import type { KeyUse } from '../../core/storage/keys/key-use.ts';
import { fakeClock } from '../support/clock.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { createTenants, type DirectAccess, openDirect, type Tenants, toCaller } from '../support/tenants.ts';

describe('calls in the database', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    const now = clock.now();
    let direct: DirectAccess;
    let tenants: Tenants;
    let digest: Digest;
    /** A partner user's key, with access to both of the partner's campaigns. */
    let partnerDigest: Digest;
    let seen: unknown[];
    let calls: CallStore;

    before(async () => {
      direct = await openDirect(await freshDatabase(kind), clock);
      tenants = await createTenants(direct.ports);
      digest = await createKey(tenants.users.account);
      partnerDigest = await createKey(tenants.users.partner);
    });
    beforeEach(async () => {
      await direct.storage.database.write('calls').delete();
      seen = [];
      calls = storeOn(direct.storage.database);
    });
    after(() => direct.close());

    const createKey = async (user: User, expiration: Parameters<typeof createApiKey>[2]['expiration'] = { kind: 'none' }) => {
      const { keyValue } = await createApiKey(
        direct.ports,
        { viewer: { ...user, tenancy: null }, actor: operator },
        {
          name: 'K',
          expiration,
          timeZone: 'UTC',
        },
      );
      return toDigest(keyValue);
    };
    const storeOn = (database: Database) => {
      const keyUse: KeyUse = {
        note: ({ digest, at }, ...did) => seen.push([digest, at, ...did]),
        noteRefused: (...refused) => seen.push(refused),
        lag: () => 0,
        close: async () => undefined,
      };
      return callStore(
        database,
        keyUse,
        { unlistedAt: () => null },
        {
          onBatch: (...batch) => seen.push(batch),
          onPlaced: () => seen.push('placed'),
          onAddressRefused: (...refused) => seen.push(refused),
        },
      );
    };
    const request = ({ by = digest, campaignId = tenants.campaign.id, at = now } = {}) => ({ ...toCaller(by), campaignId, at });
    const newCall = (requestId: string, more: Partial<NewCall> = {}): NewCall => ({
      ...{ contactId: `contact of ${requestId}`, requestId, phone: '+493012345678', name: null, timeZone: null, variables: null },
      ...{ notBefore: null, notAfter: null, ...more },
    });
    const place = (requestId: string, more: Partial<NewCall> = {}, by: Parameters<typeof request>[0] = {}) =>
      calls.place(request(by), newCall(requestId, more));
    const row = (requestId: string) => direct.storage.database.read('calls').where({ request_id: requestId }).first();

    for (const by of ['requestId', 'contactId'] as const) {
      const reference = (requestId: string) => (by === 'requestId' ? { requestId } : { contactId: `contact of ${requestId}` });

      it(`are cancelled by their ${by}, and return the same again`, async () => {
        await place('r');
        seen = [];
        const cancelled = { kind: 'cancelled', contactId: 'contact of r', requestId: 'r', cancelledAt: instant(now + 5) };
        expect(await calls.cancel(request({ at: instant(now + 5) }), reference('r'))).to.deep.equal(cancelled);
        expect(seen).to.deep.equal([
          ['cancel', 1],
          [digest, now + 5, 'cancelled'],
        ]);
        expect(await calls.cancel(request({ at: instant(now + 6) }), reference('r'))).to.deep.equal(cancelled);
        expect(seen.slice(2)).to.deep.equal([
          ['cancel', 1],
          ['explain', 1],
          [digest, now + 6],
        ]);
      });

      it(`aren't cancelled by their ${by} if they were dialed, don't exist, or the key doesn't have access`, async () => {
        await place('r');
        await place('dialed');
        await direct.storage.database.write('calls').where({ request_id: 'dialed' }).update({ state: 'dialing', handoff: 'open' });
        const kinds = await Promise.all([
          calls.cancel(request(), reference('dialed')),
          calls.cancel(request(), reference('none')),
          calls.cancel(request({ campaignId: tenants.siblingCampaign.id }), reference('r')),
          calls.cancel(request({ by: 'no key' }), reference('r')),
          calls.cancel(request({ campaignId: tenants.siblingCampaign.id, by: partnerDigest }), reference('r')),
        ]);
        expect(kinds.map((answer) => answer.kind)).to.deep.equal([
          ...['already-dialed', 'call-not-found', 'campaign-refused', 'unauthorized', 'call-not-found'],
        ]);
        expect((await row('r'))?.state).to.equal('queued');
      });
    }

    it('with the same request ID in two campaigns are cancelled together, each with its own result', async () => {
      const campaigns = [tenants.campaign.id, tenants.siblingCampaign.id];
      for (const campaignId of campaigns) await place('r', { contactId: `in ${campaignId}` }, { campaignId, by: partnerDigest });
      const cancelled = await Promise.all(
        campaigns.map((campaignId) => calls.cancel(request({ campaignId, by: partnerDigest }), { requestId: 'r' })),
      );
      expect(cancelled.map((one) => one.kind === 'cancelled' && one.contactId)).to.deep.equal(campaigns.map((id) => `in ${id}`));
    });

    it("are accepted only with a key that's active at that time", async () => {
      const end = '2026-11-22T23:59:59.999Z';
      const ending = await createKey(tenants.users.account, { kind: 'custom', date: end.slice(0, 10) });
      const last = Date.parse(end);
      const found = await Promise.all([
        calls.findActive({ ...toCaller(ending), at: instant(last) }),
        calls.findActive({ ...toCaller('no key'), at: instant(last) }),
        calls.findActive({ ...toCaller(digest), at: instant(last) }),
        calls.findActive({ ...toCaller(ending), at: instant(last + 60_000) }),
      ]);
      expect(found).to.deep.equal([{ expiresAt: last, limits: null }, null, { expiresAt: null, limits: null }, null]);
      expect(seen).to.deep.equal([['look up', 4]]);
    });

    it('are accepted only with a key that has access to the campaign', async () => {
      expect([
        await calls.authorize(request()),
        await calls.authorize(request({ campaignId: tenants.otherCampaign.id })),
        await calls.authorize(request({ by: 'no key' })),
      ]).to.deep.equal(['authorized', 'campaign-refused', 'unauthorized']);
    });

    it('that change between statement and lookup are retried up to five times', async () => {
      const { database } = direct.storage;
      let tries = 0;
      const never =
        <Nothing>(nothing: Nothing) =>
        async () => {
          tries++;
          return nothing;
        };
      await place('r');
      calls = storeOn({
        ...database,
        prepareChange: () => never(0),
        prepareCounted: () => never([]),
      });
      for (const trying of [() => place('new'), () => calls.cancel(request(), { requestId: 'r' })]) {
        tries = 0;
        const problem: unknown = await trying().catch((error: unknown) => error);
        expect(problem).to.include({
          ...{ code: 'unavailable', retryAfter: 1, message: 'The data that this request needs is changing too fast. Try again.' },
        });
        expect(tries).to.equal(5);
      }
    });
  });
});
