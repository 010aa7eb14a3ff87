import { expect } from 'chai';
import { verifyChain } from '../../core/domain/audit/audit-chain.ts';
import { instant } from '../../core/domain/instant.ts';
import { auditChainStore } from '../../core/storage/audit/audit-chain.ts';
import { callListStore } from '../../core/storage/calls/call-list.ts';
import { dialingStore } from '../../core/storage/dialing/dialing.ts';
import type { OpenedDatabase } from '../../core/storage/engine/database.ts';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openDatabase } from '../../core/storage/engine/open.ts';
import type { CallRow } from '../../core/storage/engine/tables.ts';
import { apiKeyStore } from '../../core/storage/keys/api-keys.ts';
import { isMigrated, migrate } from '../../core/storage/migrate.ts';
import { protectionStore } from '../../core/storage/protection/protection.ts';
import { cancelQueued, countQueued } from '../../core/storage/queue/queue.ts';
import { secondFactorStore } from '../../core/storage/users/second-factors.ts';
import { sessionStore } from '../../core/storage/users/sessions.ts';
import { emptyDatabase, onEachDatabase } from '../support/databases.ts';
import { migrateToRelease } from '../support/earlier-schema.ts';

const call = (number: number, more: Partial<CallRow> = {}): Omit<CallRow, 'late_outcome_at' | 'held_until' | 'response_held_until'> => ({
  contact_id: `contact-${number}`,
  campaign_id: `campaign-${number % 3}`,
  account_id: 'account',
  request_id: `request-${number}`,
  api_key_id: 'key',
  state: 'queued',
  phone: '+4930555001',
  name: 'Ada Lovelace',
  time_zone: null,
  variables: '[["orderNumber","4711"]]',
  not_before: null,
  not_after: null,
  placed_at: instant(1_795_000_000_000 + number),
  cancelled_at: null,
  due_at: instant(1_795_000_000_000 + number),
  attempt: 0,
  first_attempt_at: null,
  handoff: null,
  provider: null,
  dialed_at: null,
  ended_at: null,
  duration_seconds: null,
  detail: null,
  ...more,
});

const user = { name: 'Pat', user_type: 'partner' as const, partner_id: 'partner', password_hash: '', created_at: instant(1) };
const key = { name: 'A key', creator_id: 'user', creator_partner_id: 'partner', partner_id: 'partner', created_at: instant(1) };

describe('a database from an earlier release', () => {
  onEachDatabase((kind) => {
    let database: OpenedDatabase;
    const calls = [
      ...Array.from({ length: 100 }, (_, number) => call(number)),
      call(100, { state: 'dialing', handoff: 'taken', provider: 'webhook', attempt: 2, dialed_at: instant(1_795_000_060_000) }),
      call(101, {
        state: 'completed',
        handoff: 'taken',
        due_at: null,
        ended_at: instant(1_795_000_090_000),
        duration_seconds: 30,
        detail: 'Talked.',
      }),
      call(102, {
        state: 'cancelled',
        due_at: null,
        cancelled_at: instant(1_795_000_005_000),
        ended_at: instant(1_795_000_005_000),
        phone: null,
        name: null,
      }),
    ];
    beforeEach(async () => {
      const location = parseDatabaseUrl(await emptyDatabase(kind));
      database = openDatabase(location, 'make');
      await migrateToRelease(database, 'first');
      for (const row of calls) await database.write('calls').insert(row);
    });
    afterEach(() => database.close());
    it('gets a count of its existing keys', async () => {
      const { write, read } = database;
      await write('partners').insert({ id: 'partner', name: 'Northwind Voice', created_at: instant(1) });
      await write('users').insert({ ...user, id: 'user', email: 'pat@example.com' });
      await write('api_keys').insert([1, 2, 3].map((n) => ({ ...key, id: `key-${n}`, digest: `digest-${n}` })));
      await migrate(database);
      expect(await read('api_key_counts').select('scope', 'id', 'keys').orderBy('scope')).to.deep.equal([
        { scope: 'creator_id', id: 'user', keys: 3 },
        { scope: 'creator_partner_id', id: 'partner', keys: 3 },
        { scope: 'partner_id', id: 'partner', keys: 3 },
      ]);
    });

    it('keeps its sessions, which all began with a password', async () => {
      const { write, read } = database;
      await write('partners').insert({ id: 'partner', name: 'Northwind Voice', created_at: instant(1) });
      await write('users').insert({ ...user, id: 'user', email: 'pat@example.com' });
      await write('sessions').insert({ id: 'session', user_id: 'user', started_at: instant(1), last_seen_at: instant(2) });
      await migrate(database);
      const found = await sessionStore(database).find('session');
      expect(found).to.deep.include({ issuer: null, startedAt: 1, lastSeenAt: 2 });
      expect(await read('oidc_links')).to.deep.equal([]);
    });

    it("doesn't ask its users for a code, even in their sessions, until they set up a second factor", async () => {
      const { write, read } = database;
      await write('partners').insert({ id: 'partner', name: 'Northwind Voice', created_at: instant(1) });
      await write('users').insert({ ...user, id: 'user', email: 'pat@example.com' });
      await write('sessions').insert({ id: 'session', user_id: 'user', started_at: instant(1), last_seen_at: instant(2) });
      await migrate(database);
      const [sessions, factors] = [sessionStore(database), secondFactorStore(database)];
      expect(await sessions.find('session')).to.deep.include({ halfOpenUntil: null, hasSecondFactor: false });
      expect(await factors.find('user')).to.equal(null);
      expect(await factors.enroll({ id: 'user' }, 'sealed')).to.equal(true);
      const confirmed = { secret: 'sealed', step: 1, recoveryDigests: ['a', 'b'], at: instant(3) };
      const subject = { kind: 'user', id: 'user', name: 'Pat' } as const;
      const event = {
        id: 'event',
        at: instant(3),
        actor: null,
        action: 'second-factor.enabled',
        subject,
        owningScope: null,
        address: 'local',
        session: 'session',
      } as const;
      expect(await factors.confirm('user', confirmed, event)).to.equal(true);
      expect(await sessions.find('session')).to.deep.include({ halfOpenUntil: null, hasSecondFactor: true });
      for (const table of ['sessions', 'users'] as const) await write(table).delete();
      for (const table of ['second_factors', 'recovery_codes'] as const) expect(await read(table), table).to.deep.equal([]);
    });

    const event = (action: 'api-key.limited' | 'do-not-call.added') => ({
      ...{ id: action, at: instant(1), actor: null, action, owningScope: null, address: 'local' },
      subject: { kind: 'api-key' as const, id: 'key-1', name: 'A key' },
    });

    it('has keys without limits, which can then be limited', async () => {
      const { write, read } = database;
      await write('partners').insert({ id: 'partner', name: 'Northwind Voice', created_at: instant(1) });
      await write('users').insert({ ...user, id: 'user', email: 'pat@example.com' });
      await write('api_keys').insert({ ...key, id: 'key-1', digest: 'digest-1' });
      await migrate(database);
      const store = apiKeyStore(database);
      expect(await store.find({ kind: 'all' }, 'key-1')).to.deep.include({ limits: null, timeZone: 'UTC' });
      expect(await store.addresses('key-1', instant(0), 5)).to.deep.equal([]);
      const limits = { version: 'one', addresses: ['10.0.0.0/8'], callsPerDay: 2, timeZone: 'UTC' };
      const today = { day: '2026-11-21', from: instant(0), before: instant(Date.parse('2026-11-22')), ids: ['0'], recentId: '1' };
      expect(await store.limit('key-1', null, limits, today, { ...event('api-key.limited'), detail: 'at most 2 calls per day' })).to.equal(
        true,
      );
      expect(await store.find({ kind: 'all' }, 'key-1')).to.deep.include({ limits });
      expect(await read('api_key_days').select('day', 'placed')).to.deep.equal([{ day: '2026-11-21', placed: 0 }]);
    });

    it('has queued calls that a do-not-call list can block', async () => {
      const { write, read } = database;
      await write('partners').insert({ id: 'partner', name: 'Northwind Voice', created_at: instant(1) });
      await write('accounts').insert({ id: 'account', partner_id: 'partner', name: 'Blue Clinic', created_at: instant(1) });
      await migrate(database);
      const store = protectionStore(database);
      const entry = { reason: 'asked', note: null, source: 'admin', call: null, createdBy: null, endsAt: null } as const;
      const owner = { accountId: 'account', partnerId: 'partner' };
      const added = { ...entry, owner, createdAt: instant(1), numbers: [{ id: 'entry', phone: '+4930555001' }] };
      expect(await store.addNumbers(added, instant(1), event('do-not-call.added'))).to.include({ added: 1, beingDialed: 1 });
      expect(await store.blockListed(instant(2))).to.equal(100);
      expect(await read('calls').where({ state: 'queued' })).to.deep.equal([]);
    });

    it('chains its existing audit events in order', async () => {
      const event = { actor_id: null, actor_name: null, action: 'user.added', subject_kind: 'user' as const, subject_id: 'user' };
      const ids = Array.from({ length: 250 }, (_, n) => `event-${String(n).padStart(3, '0')}`);
      for (const id of ids)
        await database.write('audit_events').insert({ ...event, id, at: instant(1), subject_name: 'Ada', address: 'local' });
      await migrate(database);
      const chain = auditChainStore(database);
      expect(await chain.extend()).to.equal(250);
      expect(await database.read('audit_events').orderBy('seq').pluck('id')).to.deep.equal(ids);
      expect(await verifyChain(chain, [])).to.deep.include({ events: 250, unchained: 0, faults: [] });
    });

    const stored = () =>
      database
        .read('calls')
        .select(Object.keys(call(0)))
        .orderBy('placed_at');

    it('keeps every call unchanged', async () => {
      const before = await stored();
      expect(await migrate(database)).not.to.deep.equal([]);
      expect(await stored()).to.deep.equal(before);
      expect(await isMigrated(database)).to.equal(true);
    });

    it("no longer contains a provider's texts about calls whose contact data was already erased", async () => {
      const ended = { state: 'failed', due_at: null, ended_at: instant(1), detail: 'Ada has moved.' } as const;
      await database.write('calls').insert([call(300, { ...ended, phone: null }), call(301, ended)]);
      await migrate(database);
      const details = database.read('calls').whereIn('contact_id', ['contact-300', 'contact-301']).orderBy('contact_id').pluck('detail');
      expect(await details).to.deep.equal([null, 'Ada has moved.']);
    });

    it("counts last month's key use and call outcomes by quarter-hour, and continues counting", async () => {
      const { write, read } = database;
      await write('partners').insert({ id: 'partner', name: 'Northwind Voice', created_at: instant(1) });
      await write('users').insert({ ...user, id: 'user', email: 'pat@example.com' });
      await write('api_keys').insert({ ...key, id: 'key', digest: 'digest' });
      await write('calls').insert(call(400, { placed_at: instant(1), state: 'completed', due_at: null, ended_at: instant(2) }));
      await migrate(database);
      const quarter_at = 1_795_000_000_000 - (1_795_000_000_000 % 900_000);
      expect(await read('api_key_usage')).to.deep.equal([{ api_key_id: 'key', quarter_at, placed: 103, cancelled: 1, refused: 0 }]);
      const counted = () => read('call_counts').orderBy('state');
      const before = [
        { campaign_id: 'campaign-0', quarter_at, state: 'cancelled', calls: 1 },
        { campaign_id: 'campaign-2', quarter_at, state: 'completed', calls: 1 },
      ];
      expect(await counted()).to.deep.equal(before);
      await write('calls').where({ contact_id: 'contact-2' }).update({ state: 'dialing', handoff: 'taken' });
      const outcome = { state: 'completed', detail: null, endedAt: instant(3), durationSeconds: 1 } as const;
      expect(await dialingStore(database).reportOutcome('contact-2', outcome, instant(4))).to.equal('recorded');
      await callListStore(database).compactCounts();
      expect(await counted()).to.deep.equal([before[0], { ...before[1], calls: 2 }]);
    });

    it('still finds and cancels the queued calls of a key', async () => {
      await migrate(database);
      const before = await countQueued(database, ['key', 'another']);
      const cancelled = await cancelQueued(database, { ids: ['key'] }, instant(1_795_000_100_000));
      expect([[...before], cancelled, [...(await countQueued(database, ['key']))]]).to.deep.equal([[['key', 100]], 100, []]);
    });

    it('still rejects a second call with the same request ID or the same hand-off', async () => {
      await migrate(database);
      const refusals: string[] = [];
      for (const again of [
        call(200, { campaign_id: 'campaign-0', request_id: 'request-0' }),
        call(101, { campaign_id: 'another', handoff: 'taken' }),
      ]) {
        refusals.push(
          await database
            .write('calls')
            .insert(again)
            .then(
              () => 'taken',
              () => 'refused',
            ),
        );
      }
      expect(refusals).to.deep.equal(['refused', 'refused']);
    });

    it('is unchanged after an interrupted migration, and can then be migrated', async () => {
      const before = await stored();
      const cutOff = database.write.transaction(async (trx) => {
        await migrate({ ...database, write: trx });
        throw new Error('cut off');
      });
      expect(await cutOff.catch((error: Error) => error.message)).to.equal('cut off');
      expect(await isMigrated(database)).to.equal(false);
      expect(await stored()).to.deep.equal(before);
      await migrate(database);
      expect(await stored()).to.deep.equal(before);
    });
  });
});
