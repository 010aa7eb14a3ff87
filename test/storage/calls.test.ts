import { expect } from 'chai';
import { createApiKey, revokeApiKey, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { placeCall } from '../../core/domain/calls/calls.ts';
import { instant } from '../../core/domain/instant.ts';
import type { Digest, NewCall, User } from '../../core/domain/model.ts';
import type { CallStore } from '../../core/domain/ports/calls.ts';
import { callStore } from '../../core/storage/calls/calls.ts';
import type { Database } from '../../core/storage/engine/database.ts';
import type { KeyUse } from '../../core/storage/keys/key-use.ts';
import { fakeClock } from '../support/clock.ts';
import { freshDatabase, itOnPostgres, onEachDatabase } from '../support/databases.ts';
import { recordStatements } from '../support/recorded-statements.ts';
import {
  createTenants,
  type DirectAccess,
  databaseWithTenants,
  openDirect,
  somePhone,
  type Tenants,
  toCaller,
} from '../support/tenants.ts';

describe('requests that share a statement', () => {
  onEachDatabase((kind) => {
    let direct: DirectAccess;
    let tenants: Tenants;

    before(async () => {
      direct = await openDirect(await freshDatabase(kind), fakeClock());
      tenants = await createTenants(direct.ports);
    });
    after(() => direct.close());

    const toViewer = (user: User) => ({ ...user, tenancy: null });
    const createKey = async (user: User) => {
      const input = { name: 'A key', expiration: { kind: 'none' }, timeZone: 'Europe/Berlin' } as const;
      const { apiKey, keyValue } = await createApiKey(direct.ports, { viewer: toViewer(user), actor: operator }, input);
      return { id: apiKey.id, digest: toDigest(keyValue) };
    };
    const request = (digest: Awaited<ReturnType<typeof createKey>>['digest']) => ({
      ...toCaller(digest),
      campaignId: tenants.campaign.id,
      at: direct.ports.clock.now(),
    });

    it('to cancel the same call each get the result for their own key', async () => {
      const { account, teammate, other } = tenants.users;
      const [placing, colleague, revoked, elsewhere] = await Promise.all([account, teammate, account, other].map(createKey));
      if (!placing || !colleague || !revoked || !elsewhere) throw new Error('A key is missing.');
      const input = { contact: { phone: somePhone() } };
      const { contactId } = await placeCall(direct.ports, toCaller(placing.digest), tenants.campaign.id, input);
      await revokeApiKey(direct.ports, { viewer: toViewer(account), actor: operator }, revoked.id, false);
      const { cancel } = direct.ports.stores.calls;
      const keys = [elsewhere, placing, revoked, colleague, elsewhere];
      const kinds = (await Promise.all(keys.map(({ digest }) => cancel(request(digest), { contactId })))).map((answer) => answer.kind);
      expect(kinds).to.deep.equal(['campaign-refused', 'cancelled', 'unauthorized', 'cancelled', 'campaign-refused']);
    });
  });
});

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
      return callStore(database, keyUse, {
        onBatch: (...batch) => seen.push(batch),
        onPlaced: () => seen.push('placed'),
        onAddressRefused: (...refused) => seen.push(refused),
      });
    };
    const request = ({ by = digest, campaignId = tenants.campaign.id, at = now } = {}) => ({ ...toCaller(by), campaignId, at });
    const newCall = (requestId: string, more: Partial<NewCall> = {}): NewCall => ({
      ...{ contactId: `contact of ${requestId}`, requestId, phone: '+493012345678', name: null, timeZone: null, variables: null },
      ...{ notBefore: null, notAfter: null, ...more },
    });
    const place = (requestId: string, more: Partial<NewCall> = {}, by: Parameters<typeof request>[0] = {}) =>
      calls.place(request(by), newCall(requestId, more));
    const row = (requestId: string) => direct.storage.database.read('calls').where({ request_id: requestId }).first();

    it("are stored when they're placed, with everything that was requested, and are due immediately", async () => {
      const call = { name: 'Ada', timeZone: 'UTC', variables: { b: '2', a: '1' }, notBefore: instant(now - 1), notAfter: instant(now + 9) };
      expect(await place('r', call)).to.deep.equal({ kind: 'placed', heldUntil: null, placedToday: null });
      expect(await row('r')).to.include({
        ...{ campaign_id: tenants.campaign.id, account_id: tenants.account.id, state: 'queued', placed_at: now, due_at: now },
        ...{ contact_id: 'contact of r', request_id: 'r', phone: '+493012345678', name: 'Ada', time_zone: 'UTC' },
        ...{ variables: '[["a","1"],["b","2"]]', not_before: instant(now - 1), not_after: instant(now + 9), attempt: 0 },
      });
      expect(seen).to.deep.equal([['place', 1], [digest, now, 'placed'], 'placed']);
    });

    it('are due at notBefore', async () => {
      await place('r', { notBefore: instant(now + 5) });
      expect(await row('r')).to.include({ placed_at: now, due_at: instant(now + 5) });
    });

    it('are placed once per request ID, and repeating it returns the first result unless something differs', async () => {
      const call = { variables: { b: '2', a: '1' }, notAfter: instant(now + 9) };
      await place('r', call);
      seen = [];
      const again = await place('r', { ...call, variables: { a: '1', b: '2' }, contactId: 'another' }, { at: instant(now + 5) });
      expect(again).to.deep.equal({ kind: 'replayed', contactId: 'contact of r', placedAt: now, heldUntil: null, placedToday: null });
      expect(seen).to.deep.equal([
        ['place', 1],
        ['explain', 1],
        [digest, now + 5],
      ]);
      for (const other of [
        { phone: '+493087654321' },
        { name: 'Ada' },
        { timeZone: 'UTC' },
        { variables: { a: '1' } },
        { notBefore: instant(1) },
      ])
        expect(await place('r', { ...call, ...other }), JSON.stringify(other)).to.deep.equal({ kind: 'request-id-conflict' });
      expect(await place('r', { ...call, notAfter: instant(now + 8) })).to.deep.equal({ kind: 'request-id-conflict' });
    });

    it('that are placed together each get their own result', async () => {
      await place('old');
      const fresh = { contactId: 'fresh' };
      seen = [];
      const { id: otherCampaign } = tenants.otherCampaign;
      const kinds = async (...placing: Promise<{ kind: string }>[]) => (await Promise.all(placing)).map((answer) => answer.kind);
      expect(
        await kinds(
          place('b'),
          place('old', fresh),
          place('c', {}, { campaignId: otherCampaign }),
          place('a'),
          place('d', {}, { by: 'no key' }),
        ),
      ).to.deep.equal(['placed', 'replayed', 'campaign-refused', 'placed', 'unauthorized']);
      expect(seen.filter((one) => Array.isArray(one) && one.length === 2 && typeof one[1] === 'number' && one[1] < 10)).to.deep.equal([
        ['place', 5],
        ['explain', 3],
      ]);
      expect(await kinds(place('old', fresh), place('e', {}, { by: 'no key' }))).to.deep.equal(['replayed', 'unauthorized']);
    });

    it("that are looked up together each get their own result, whatever the order of the database's rows", async () => {
      await place('old');
      const { database } = direct.storage;
      calls = storeOn({
        ...database,
        prepare: (columns, sql, mode) => {
          const run = database.prepare(columns, sql, mode);
          return sql('r').startsWith('SELECT r.n') ? async (rows) => (await run(rows)).toReversed() : run;
        },
      });
      const { id: otherCampaign } = tenants.otherCampaign;
      const answers = [
        place('old', { contactId: 'fresh' }),
        place('a', {}, { campaignId: otherCampaign }),
        place('b', {}, { by: 'no key' }),
      ];
      expect((await Promise.all(answers)).map(({ kind }) => kind)).to.deep.equal(['replayed', 'campaign-refused', 'unauthorized']);
    });

    it('are changed on the writing connection, and read on another except right after a batch has written them', async () => {
      const { database, ran } = recordStatements(direct.storage.database);
      calls = storeOn(database);
      const ranFor = async (...asking: Promise<unknown>[]) => {
        await Promise.all(asking);
        return ran.splice(0);
      };
      const readBack = kind === 'sqlite' ? ['read back SELECT 1'] : [];
      expect(await ranFor(place('r'), place('s'))).to.deep.equal(['change INSERT INTO', ...readBack]);
      expect(await ranFor(place('r', { contactId: 'fresh' }), place('t'))).to.deep.equal([
        ...['change INSERT INTO', 'write SELECT r.contact_id', ...readBack, 'read SELECT r.n,'],
      ]);
      expect(await ranFor(calls.cancel(request(), { requestId: 'r' }))).to.deep.equal(['write UPDATE calls', ...readBack]);
      expect(await ranFor(calls.cancel(request(), { requestId: 'none' }))).to.deep.equal(['write UPDATE calls', 'read SELECT r.n,']);
      expect(await ranFor(calls.findActive(request()))).to.deep.equal(['read SELECT r.n,']);
    });

    it('record the use of an active key, even if its request is refused, but not of any other key', async () => {
      expect(await place('r', {}, { campaignId: tenants.otherCampaign.id })).to.deep.equal({ kind: 'campaign-refused' });
      expect(await place('r', {}, { by: 'no key' })).to.deep.equal({ kind: 'unauthorized' });
      expect(seen).to.deep.equal([
        ...[
          ['place', 1],
          ['explain', 1],
          [digest, now],
        ],
        ...[
          ['place', 1],
          ['explain', 1],
        ],
      ]);
    });

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

    it('are accepted only with a key that is active at that time', async () => {
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

    if (kind === 'postgres')
      it("are written in the same order by every process, so that two batches of the same calls can't deadlock", async () => {
        const { database } = direct.storage;
        const written = () =>
          database.query<{ request_id: string; campaign_id: string }>('SELECT request_id, campaign_id FROM calls ORDER BY ctid');
        const [first = '', second = ''] = [tenants.campaign.id, tenants.siblingCampaign.id].toSorted();
        const asked = [
          ['c', first, partnerDigest],
          ['a', second, partnerDigest],
          ['b', first, digest],
          ['a', first, partnerDigest],
        ] as const;
        const inOrder = [
          ['a', first],
          ['b', first],
          ['c', first],
          ['a', second],
        ].map(([request_id, campaign_id]) => ({ request_id, campaign_id }));
        await Promise.all(asked.map(([id, campaignId, by]) => place(id, { contactId: `${id} ${campaignId}` }, { campaignId, by })));
        expect(await written()).to.deep.equal(inOrder);
        // An update writes the rows again, after all others.
        await Promise.all(asked.map(([requestId, campaignId, by]) => calls.cancel(request({ campaignId, by }), { requestId })));
        expect(await written()).to.deep.equal(inOrder);
      });

    it('that change between statement and look-up are retried up to five times', async () => {
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
        prepare: (columns, sql, mode) => (sql('r').startsWith('UPDATE calls') ? never([]) : database.prepare(columns, sql, mode)),
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

    if (kind === 'sqlite') {
      it('are acknowledged only if another connection sees them, and otherwise the writer is closed', async () => {
        const { database } = direct.storage;
        const asked: unknown[] = [];
        const discarded: string[] = [];
        let sees = true;
        calls = storeOn({
          ...database,
          prepare: (columns, sql, mode) => {
            const run = database.prepare(columns, sql, mode);
            if (!sql('r').startsWith('SELECT 1')) return run;
            return async (rows) => {
              asked.push([mode, ...rows]);
              return sees ? run(rows) : [];
            };
          },
          discardWriter: async (reason) => void discarded.push(reason.message),
        });
        const { id } = tenants.campaign;
        await place('r');
        await place('r', { contactId: 'fresh' });
        expect((await calls.cancel(request(), { requestId: 'r' })).kind).to.equal('cancelled');
        await calls.cancel(request(), { requestId: 'r' });
        await Promise.all([place('r', { contactId: 'fresh' }), place('s')]);
        await Promise.all(['none', 's'].map((requestId) => calls.cancel(request(), { requestId })));
        expect([asked, discarded]).to.deep.equal([
          [
            ['read back', [id, 'contact of r', null]],
            ['read back', [id, 'contact of r', 'cancelled']],
            ['read back', [id, 'contact of s', null]],
            ['read back', [id, 'contact of s', 'cancelled']],
          ],
          [],
        ]);
        await place('u');
        sees = false;
        for (const trying of [() => place('t'), () => calls.cancel(request(), { requestId: 'u' })]) {
          const problem: unknown = await trying().catch((error: unknown) => error);
          expect(problem).to.include({
            ...{ code: 'unavailable', retryAfter: 2 },
            message: 'The database lost the write. Try again with the same request ID.',
          });
          expect(problem).to.have.nested.property('cause.message', "A write wasn't committed: only the connection that wrote it sees it.");
        }
        const reason = "A write wasn't committed: only the connection that wrote it sees it.";
        expect(discarded).to.deep.equal([reason, reason]);
      });
    }
  });
});

describe('on PostgreSQL', () => {
  itOnPostgres('finds keys by their digests with an index in each statement, however many keys there are', async () => {
    const { database, tenants } = await databaseWithTenants('postgres');
    const direct = await openDirect(database, fakeClock());
    const { account, partner, users } = tenants;
    const of = { creator_id: users.account.id, creator_partner_id: partner.id, account_id: account.id, partner_id: partner.id };
    const row = (n: number) => ({ ...of, id: `k${n}`, digest: toDigest(`k${n}`), name: 'x', created_at: instant(0) });
    await direct.storage.database.write.batchInsert(
      'api_keys',
      Array.from({ length: 1_000 }, (_, n) => row(n)),
    );
    // Analyzes only the keys and not the few users, as autovacuum would.
    await direct.storage.database.write.raw('ANALYZE api_keys');
    const request = { ...toCaller(toDigest('k1')), campaignId: tenants.campaign.id, at: instant(0) };
    const { calls } = direct.ports.stores;
    await calls.findActive(request);
    await calls.authorize(request);
    await placeCall(direct.ports, request, tenants.campaign.id, { contact: { phone: somePhone() } });
    await calls.cancel(request, { contactId: 'none' });
    await calls.cancel(request, { requestId: 'none' });

    // One transaction, so that everything runs on the connection that has prepared the statements.
    const plans = await direct.storage.database.lanes.keys.write.transaction(async (trx) => {
      await trx.raw('SET LOCAL plan_cache_mode = force_generic_plan');
      const { rows } = await trx.raw(`SELECT name FROM pg_prepared_statements WHERE statement LIKE '%api_keys%'`);
      const found: string[] = [];
      for (const { name } of rows) found.push(JSON.stringify((await trx.raw(`EXPLAIN (FORMAT JSON) EXECUTE "${name}"('[]')`)).rows));
      return found;
    });
    await direct.close();
    expect(plans).to.have.length(6);
    for (const plan of plans) expect(plan).to.match(/"Relation Name":"api_keys"[^{}]*"Index Cond":"\(digest = /);
  });
});
