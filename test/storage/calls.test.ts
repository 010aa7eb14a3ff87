import { mock } from 'node:test';
import { expect } from 'chai';
import { callStates } from '#contract/calls/calls.ts';
import { changeApiKey } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { handoffStages, isHandoffStage, stagesBefore, toState } from '../../core/domain/calls/call-states.ts';
import { deadlines } from '../../core/domain/deadlines.ts';
import { instant } from '../../core/domain/instant.ts';
import { ResultUnknown } from '../../core/domain/problem.ts';
import { callStoreForEach, rejection } from '../support/call-store.ts';
import { onEachDatabase, recordStatements } from '../support/databases.ts';
import { toCaller } from '../support/tenants.ts';

describe('calls in the database', () => {
  onEachDatabase((kind) => {
    const store = callStoreForEach(kind);
    const { now, createKey, storeOn, request, newCall, place, row } = store;
    const placed = { kind: 'placed', contactId: 'contact of r', placedAt: now, heldUntil: null, placedToday: null };

    it("are stored when they're placed, with everything that was requested, and are due immediately", async () => {
      const call = { name: 'Ada', timeZone: 'UTC', variables: { b: '2', a: '1' }, notBefore: instant(now - 1), notAfter: instant(now + 9) };
      expect(await place('r', call)).to.deep.equal(placed);
      expect(await row('r')).to.include({
        ...{ campaign_id: store.tenants.campaign.id, account_id: store.tenants.account.id, state: 'queued', placed_at: now, due_at: now },
        ...{ contact_id: 'contact of r', request_id: 'r', phone: '+493012345678', name: 'Ada', time_zone: 'UTC' },
        ...{ variables: '[["a","1"],["b","2"]]', not_before: instant(now - 1), not_after: instant(now + 9), attempt: 0 },
      });
      expect(store.seen).to.deep.equal([['place', 1], [store.digest, now, 'placed'], 'placed']);
    });

    it('are due at notBefore', async () => {
      await place('r', { notBefore: instant(now + 5) });
      expect(await row('r')).to.include({ placed_at: now, due_at: instant(now + 5) });
    });

    it('are placed once per request ID, and a repeated request gets the first result unless something differs', async () => {
      const call = { variables: { b: '2', a: '1' }, notAfter: instant(now + 9) };
      await place('r', call);
      store.seen = [];
      const again = await place('r', { ...call, variables: { a: '1', b: '2' }, contactId: 'another' }, { at: instant(now + 5) });
      expect(again).to.deep.equal({ ...placed, kind: 'replayed' });
      expect(store.seen).to.deep.equal([
        ['place', 1],
        ['explain', 1],
        [store.digest, now + 5],
      ]);
      for (const other of [
        ...[{ phone: '+493087654321' }, { name: 'Ada' }, { timeZone: 'UTC' }, { notBefore: instant(1) }],
        ...[{ notAfter: instant(now + 8) }, { notAfter: null }, { variables: null }, { variables: { a: '1' } }],
        ...[{ variables: { ...call.variables, c: '3' } }, { variables: { a: '2', b: '2' } }, { variables: { c: '1', b: '2' } }],
      ])
        expect(await place('r', { ...call, ...other }), JSON.stringify(other)).to.deep.equal({ kind: 'request-id-conflict' });
      const full = { name: 'Ada', timeZone: 'UTC', notBefore: instant(1) };
      await place('full', full);
      for (const missing of Object.keys(full))
        expect(await place('full', { ...full, [missing]: null }), missing).to.deep.equal({ kind: 'request-id-conflict' });
    });

    it("are refused in time if the rules that apply to them can't be read", async () => {
      const { database } = store.direct.storage;
      const setVersion = (version: number | null) => database.write('partners').update({ rules_version: version });
      await setVersion(1);
      const query = () => {
        const deadline = performance.now() + deadlines.answer;
        mock.method(performance, 'now', () => deadline);
        return new Promise<never>(() => undefined);
      };
      store.calls = storeOn({ ...database, query });
      try {
        expect(await rejection(place('r'))).to.include({ code: 'unavailable', retryAfter: 2 });
      } finally {
        mock.reset();
        await setVersion(null);
      }
      expect(await row('r')).to.equal(undefined);
    });

    it('that are placed together each get their own result', async () => {
      await place('old');
      const fresh = { contactId: 'fresh' };
      store.seen = [];
      const { id: otherCampaign } = store.tenants.otherCampaign;
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
      expect(store.seen.filter((one) => Array.isArray(one) && one.length === 2 && typeof one[1] === 'number' && one[1] < 10)).to.deep.equal(
        [
          ['place', 5],
          ['explain', 3],
        ],
      );
      expect(await kinds(place('old', fresh), place('e', {}, { by: 'no key' }))).to.deep.equal(['replayed', 'unauthorized']);
    });

    it('that are placed together are each checked by the limits and the time that they came with', async () => {
      const limited = await createKey(store.tenants.users.account, { kind: 'years', years: 1 });
      const { ports, storage } = store.direct;
      const key = await storage.database.read('api_keys').where({ digest: limited }).first('id', 'expires_at');
      await changeApiKey(ports, operator, key?.id ?? '', { addresses: ['10.0.0.0/8'] });
      const expiresAt = instant(Number(key?.expires_at));
      const fresh = { ...request({ by: limited }), address: '10.0.0.1', key: { expiresAt, limits: null } };
      const placeIt = (by: Parameters<typeof store.calls.place>[0], requestId: string) => store.calls.place(by, newCall(requestId));
      expect(await placeIt(fresh, 'limits are known')).to.include({ kind: 'placed' });
      // Came before its process knew the limits.
      const outside = request({ by: limited });
      const late = { ...fresh, at: instant(expiresAt + 1) };
      const answers = await Promise.all([placeIt(fresh, 'a'), placeIt(outside, 'b'), placeIt(late, 'c'), placeIt(fresh, 'd')]);
      expect(answers.map(({ kind }) => kind)).to.deep.equal(['placed', 'unauthorized', 'unauthorized', 'placed']);
      expect(store.seen).to.deep.include(['place', 4]).and.to.deep.include(['explain', 2]);
    });

    it("that are looked up together each get their own result, whatever the order of the database's rows", async () => {
      await place('old');
      const { database } = store.direct.storage;
      store.calls = storeOn({
        ...database,
        prepare: <Found extends object>(sql: string, mode: 'read' | 'read back' | 'write') => {
          const run = database.prepare<Found>(sql, mode);
          return /^ *r\.n,/m.test(sql) ? async (given) => ({ ...(await run(given)), rows: (await run(given)).rows.toReversed() }) : run;
        },
      });
      const { id: otherCampaign } = store.tenants.otherCampaign;
      const answers = [
        place('old', { contactId: 'fresh' }),
        place('a', {}, { campaignId: otherCampaign }),
        place('b', {}, { by: 'no key' }),
      ];
      expect((await Promise.all(answers)).map(({ kind }) => kind)).to.deep.equal(['replayed', 'campaign-refused', 'unauthorized']);
    });

    it('are changed on the writing connection, and read on another one except right after a batch has written them', async () => {
      const { database, ran } = recordStatements(store.direct.storage.database);
      store.calls = storeOn(database);
      const statementsFor = async (...asking: Promise<unknown>[]) => {
        await Promise.all(asking);
        return ran.splice(0);
      };
      const readBack = kind === 'sqlite' ? ['read back SELECT 1'] : [];
      expect(await statementsFor(place('r'), place('s'))).to.deep.equal(['write INSERT INTO', ...readBack]);
      expect(await statementsFor(place('r', { contactId: 'fresh' }), place('t'))).to.deep.equal([
        ...['write INSERT INTO', 'write SELECT contact_id', ...readBack, 'read SELECT r.n,'],
      ]);
      expect(await statementsFor(store.calls.cancel(request(), { requestId: 'r' }))).to.deep.equal(['end UPDATE calls', ...readBack]);
      expect(await statementsFor(store.calls.cancel(request(), { requestId: 'none' }))).to.deep.equal([
        'end UPDATE calls',
        'read SELECT r.n,',
      ]);
      expect(await statementsFor(store.calls.findActive(request()))).to.deep.equal(['read SELECT CAST({{jsonGroup}}({{jsonArray}}(']);
    });

    it('record the use of an active key, even if its request is refused, but not of any other key', async () => {
      expect(await place('r', {}, { campaignId: store.tenants.otherCampaign.id })).to.deep.equal({ kind: 'campaign-refused' });
      expect(await place('r', {}, { by: 'no key' })).to.deep.equal({ kind: 'unauthorized' });
      expect(store.seen).to.deep.equal([
        ...[
          ['place', 1],
          ['explain', 1],
          [store.digest, now],
        ],
        ...[
          ['place', 1],
          ['explain', 1],
        ],
      ]);
    });

    for (const by of ['requestId', 'contactId'] as const) {
      const reference = (requestId: string) => (by === 'requestId' ? { requestId } : { contactId: `contact of ${requestId}` });

      it(`are cancelled by their ${by}, and cancelling them again returns the same result`, async () => {
        await place('r');
        store.seen = [];
        const cancelled = { kind: 'cancelled', contactId: 'contact of r', requestId: 'r', cancelledAt: instant(now + 5) };
        expect(await store.calls.cancel(request({ at: instant(now + 5) }), reference('r'))).to.deep.equal(cancelled);
        expect(store.seen).to.deep.equal([
          ['cancel', 1],
          [store.digest, now + 5, 'cancelled'],
        ]);
        expect(await store.calls.cancel(request({ at: instant(now + 6) }), reference('r'))).to.deep.equal(cancelled);
        expect(store.seen.slice(2)).to.deep.equal([
          ['cancel', 1],
          ['explain', 1],
          [store.digest, now + 6],
        ]);
      });

      it(`can't be cancelled by their ${by} after they were dialed, or without access to them`, async () => {
        await place('r');
        await place('dialed');
        await store.direct.storage.database.write('calls').where({ request_id: 'dialed' }).update({ state: 'dialing', handoff: 'open' });
        const kinds = await Promise.all([
          store.calls.cancel(request(), reference('dialed')),
          store.calls.cancel(request(), reference('none')),
          store.calls.cancel(request({ campaignId: store.tenants.siblingCampaign.id }), reference('r')),
          store.calls.cancel(request({ by: 'no key' }), reference('r')),
          store.calls.cancel(request({ campaignId: store.tenants.siblingCampaign.id, by: store.partnerDigest }), reference('r')),
        ]);
        expect(kinds.map((answer) => answer.kind)).to.deep.equal([
          ...['already-dialed', 'call-not-found', 'campaign-refused', 'unauthorized', 'call-not-found'],
        ]);
        expect((await row('r'))?.state).to.equal('queued');
      });

      it(`are cancelled by their ${by} once they're dialed only if the provider certainly doesn't have them, and not after they ended`, async () => {
        const stages = [...handoffStages, ...callStates.filter((state) => state !== 'dialing' && state !== 'cancelled')];
        for (const stage of stages) {
          await place(stage);
          const handoff = isHandoffStage(stage) ? stage : null;
          const state = toState(stage);
          await store.direct.storage.database.write('calls').where({ request_id: stage }).update({ state, handoff });
          const { kind } = await store.calls.cancel(request(), reference(stage));
          expect(kind, stage).to.equal(stagesBefore('cancel').includes(stage) ? 'cancelled' : 'already-dialed');
        }
      });
    }

    it('give each of several requests that cancel them in one batch the result for its own key', async () => {
      const { teammate, account, other } = store.tenants.users;
      const [colleague, revoked, elsewhere] = [await createKey(teammate), await createKey(account), await createKey(other)];
      await store.direct.storage.database.write('api_keys').where({ digest: revoked }).delete();
      await place('r');
      const keys = [elsewhere, store.digest, revoked, colleague, elsewhere];
      const answers = await Promise.all(keys.map((by) => store.calls.cancel(request({ by }), { requestId: 'r' })));
      expect(answers.map(({ kind }) => kind)).to.deep.equal([
        ...['campaign-refused', 'cancelled', 'unauthorized', 'cancelled', 'campaign-refused'],
      ]);
    });

    it('are cancelled, but both results are unknown, if two requests cancel the same call in one batch and the lookup that tells them apart fails', async () => {
      const { database } = store.direct.storage;
      await place('r');
      store.calls = storeOn({
        ...database,
        prepare: (sql, mode) =>
          sql.includes('is_listed')
            ? () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
            : database.prepare(sql, mode),
      });
      const twice = [store.calls.cancel(request(), { requestId: 'r' }), store.calls.cancel(request(), { requestId: 'r' })];
      for (const error of await Promise.all(twice.map(rejection))) expect(error).to.be.an.instanceOf(ResultUnknown);
      expect((await row('r'))?.state).to.equal('cancelled');
    });

    it('with the same request ID in two campaigns are cancelled together, each with its own result', async () => {
      const campaigns = [store.tenants.campaign.id, store.tenants.siblingCampaign.id];
      for (const campaignId of campaigns) await place('r', { contactId: `in ${campaignId}` }, { campaignId, by: store.partnerDigest });
      const cancelled = await Promise.all(
        campaigns.map((campaignId) => store.calls.cancel(request({ campaignId, by: store.partnerDigest }), { requestId: 'r' })),
      );
      expect(cancelled.map((one) => one.kind === 'cancelled' && one.contactId)).to.deep.equal(campaigns.map((id) => `in ${id}`));
    });

    it("require a key that's active at the time of the request, and record the key's use", async () => {
      const end = '2026-11-22T23:59:59.999Z';
      const ending = await createKey(store.tenants.users.account, { kind: 'custom', date: end.slice(0, 10) });
      const last = Date.parse(end);
      const found = await Promise.all([
        store.calls.findActive({ ...toCaller(ending), at: instant(last) }),
        store.calls.findActive({ ...toCaller('no key'), at: instant(last) }),
        store.calls.findActive({ ...toCaller(store.digest), at: instant(last) }),
        store.calls.findActive({ ...toCaller(ending), at: instant(last + 60_000) }),
      ]);
      expect(found).to.deep.equal([{ expiresAt: last, limits: null }, null, { expiresAt: null, limits: null }, null]);
      expect(store.seen).to.deep.equal([
        ['look up', 4],
        [ending, last],
        [store.digest, last],
      ]);
    });

    it('make a request fail after five tries, with a Retry-After, if they change each time between its statement and its lookup', async () => {
      const { database } = store.direct.storage;
      let tries = 0;
      await place('r');
      store.calls = storeOn({
        ...database,
        prepare: (sql, mode) => {
          if (mode === 'read') return database.prepare(sql, mode);
          return async () => {
            tries++;
            return { rows: [], changed: 0 };
          };
        },
      });
      for (const trying of [() => place('new'), () => store.calls.cancel(request(), { requestId: 'r' })]) {
        tries = 0;
        const problem: unknown = await trying().catch((error: unknown) => error);
        expect(problem).to.include({
          ...{ code: 'unavailable', retryAfter: 1, message: 'The data that this request needs is changing too fast. Try again.' },
        });
        expect(tries).to.equal(5);
      }
    });

    if (kind === 'postgres')
      it("are written in the same order by every process, so that two batches of the same calls can't deadlock", async () => {
        const { database } = store.direct.storage;
        const written = () =>
          database.query<{ request_id: string; campaign_id: string }>('SELECT request_id, campaign_id FROM calls ORDER BY ctid');
        const [first = '', second = ''] = [store.tenants.campaign.id, store.tenants.siblingCampaign.id].toSorted();
        const asked = [
          ['c', first, store.partnerDigest],
          ['a', second, store.partnerDigest],
          ['b', first, store.digest],
          ['a', first, store.partnerDigest],
        ] as const;
        const inOrder = [
          ['a', first],
          ['b', first],
          ['c', first],
          ['a', second],
        ].map(([request_id, campaign_id]) => ({ request_id, campaign_id }));
        await Promise.all(asked.map(([id, campaignId, by]) => place(id, { contactId: `${id} ${campaignId}` }, { campaignId, by })));
        expect(await written()).to.deep.equal(inOrder);
        // An update writes each row again, after all others, so this is the order of the updates.
        await Promise.all(asked.map(([requestId, campaignId, by]) => store.calls.cancel(request({ campaignId, by }), { requestId })));
        expect(await written()).to.deep.equal(inOrder);
      });

    if (kind === 'sqlite') {
      it('are acknowledged only if another connection sees them, and otherwise the writer is closed', async () => {
        const { database } = store.direct.storage;
        const asked: unknown[] = [];
        const discarded: string[] = [];
        let sees = true;
        store.calls = storeOn({
          ...database,
          prepare: <Found extends object>(sql: string, mode: 'read' | 'read back' | 'write') => {
            const run = database.prepare<Found>(sql, mode);
            if (!sql.startsWith('SELECT 1')) return run;
            return async (call) => {
              asked.push([mode, call]);
              return sees ? run(call) : { rows: [], changed: 0 };
            };
          },
          discardWriter: async (reason) => void discarded.push(reason.message),
        });
        const { id } = store.tenants.campaign;
        await place('r');
        await place('r', { contactId: 'fresh' });
        expect((await store.calls.cancel(request(), { requestId: 'r' })).kind).to.equal('cancelled');
        await store.calls.cancel(request(), { requestId: 'r' });
        await Promise.all([place('r', { contactId: 'fresh' }), place('s')]);
        await Promise.all(['none', 's'].map((requestId) => store.calls.cancel(request(), { requestId })));
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
        for (const trying of [() => place('t'), () => store.calls.cancel(request(), { requestId: 'u' })]) {
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
