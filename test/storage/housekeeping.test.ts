import { mock } from 'node:test';
import { expect } from 'chai';
import { Duration } from 'luxon';
import { pino } from 'pino';
import { timestamp } from '#contract/text/text.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { acceptClock, maxPause, watchClock } from '../../core/domain/clock.ts';
import { instant, type Millis, plus } from '../../core/domain/instant.ts';
import { startHousekeeping } from '../../core/server/housekeeping.ts';
import type { CallRow } from '../../core/storage/engine/tables.ts';
import { fakeClock } from '../support/clock.ts';
import { testSecret } from '../support/commands.ts';
import { type CoreHarness, openCore, startCoreHere } from '../support/core.ts';
import { itOnPostgres, onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKey, databaseWithTenants, insertCalls, onDemand, openDirect, placeCall, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const newSecret = 'another secret for tests of at least 32 characters';

describe('a running core', () => {
  onEachDatabase((kind) => {
    let clock: ReturnType<typeof fakeClock>;
    let harness: CoreHarness;
    /** A second factor's secret, encrypted with the older of the core's session secrets. */
    let sealedBefore: string;
    let timers: { run: () => void; every: number }[];
    beforeEach(() => {
      // A core's clock must not be ahead of PostgreSQL's own clock, so the test starts in the past.
      clock = fakeClock('2024-03-01T09:00:00.000Z');
      timers = [];
      // Collects the timers instead of moving them: to get to the hourly sweeps, the per-minute ones would have to run sixty times, which
      // takes seconds.
      mock.method(globalThis, 'setInterval', (run: () => void, every: number) => {
        timers.push({ run, every });
        return setTimeout(() => undefined).unref();
      });
    });
    afterEach(async () => {
      mock.reset();
      await harness.close();
    });

    const database = () => harness.direct.storage.database;
    const logged = (msg: RegExp) => harness.core.log.filter((line) => msg.test(String(line['msg']))).length;
    const addCall = (id: string, more: Partial<CallRow>) =>
      insertCalls(harness.direct, harness.tenants, [id], { placed_at: instant(clock.now() - 100 * day), ...more });
    const audit = (id: string, at: Millis) => ({
      ...{ id, at, actor_id: null, actor_name: null, action: 'user.added', subject_kind: 'user' as const, subject_id: 'u' },
      ...{ subject_name: 'U', account_id: null, partner_id: null, address: 'local' },
    });

    /** Starts a core on a database where each sweep has something to do in an hour, or now if it doesn't depend on the clock. */
    async function start(): Promise<void> {
      const { database: url, tenants } = await databaseWithTenants(kind);
      const direct = await openDirect(url, clock);
      const { write } = direct.storage.database;
      const soon = plus(clock.now(), hour);
      await write('audit_events').insert(audit('0', plus(soon, -31 * day)));
      await direct.ports.stores.auditChain.extend();
      // The core looks twice before it shows a campaign again.
      const hidden = `deleting-${tenants.siblingCampaign.id}`;
      await write('campaigns').where({ id: tenants.siblingCampaign.id }).update({ id: hidden });
      const core = await startCoreHere(url, {
        clock,
        environment: { AUDIT_RETENTION_DAYS: '30', SESSION_SECRETS: `${newSecret},${testSecret}` },
      });
      harness = { database: url, core, direct, tenants, close: () => Promise.all([direct.close(), core.close()]).then(() => undefined) };
      await until(() => logged(/sealed/) === 1);
      await addCall('past', { due_at: clock.now(), not_after: soon });
      await addCall('forgotten', { due_at: plus(soon, -30 * day) });
      await addCall('put-off', { due_at: plus(soon, 60 * day) });
      await addCall('ended', { state: 'completed', due_at: null, ended_at: plus(soon, -90 * day) });
      await write('sessions').insert({
        ...{ id: 'idle', user_id: harness.tenants.users.account.id, tenancy_kind: null, tenancy_id: null },
        ...{ started_at: plus(soon, -day), last_seen_at: plus(soon, -day) },
      });
      await write('sign_in_attempts').insert({ key: 'over', attempts: 1, expires_at: soon });
      sealedBefore = direct.ports.secretBox.seal(tenants.users.tied.id, new Uint8Array(20));
      await direct.ports.stores.secondFactors.enroll({ id: tenants.users.tied.id }, sealedBefore);
      await write('api_key_usage').insert({ api_key_id: 'key', quarter_at: plus(soon, -31 * day), placed: 1, cancelled: 0 });
      await write('call_counts').insert({ campaign_id: 'g', quarter_at: plus(soon, -31 * day), state: 'busy', calls: 1 });
      await write('audit_events').insert(audit('1', clock.now()));
      await write('sign_in_codes').insert({
        ...{ digest: 'over', user_id: tenants.users.account.id, issuer: 'https://login.example.com', subject: 'ada', challenge: 'c' },
        ...{ sign_in_version: '', expires_at: soon },
      });
      const { id: partner_id } = tenants.partner;
      const asked = { reason: 'asked', source: 'admin', created_at: instant(1) } as const;
      const listed = { ...asked, scope_id: partner_id, account_id: null, partner_id };
      await write('do_not_call').insert([
        { ...listed, id: 'over', phone: '+491', ends_at: soon },
        { ...listed, id: 'lasts', phone: '+492', ends_at: plus(soon, day) },
      ]);
      await write('do_not_call_additions').insert({ partner_id, version: plus(soon, -day), phones: '+491' });

      await write('revoked_api_keys').insert({
        ...{ id: 'revoked', name: 'R', creator_id: 'u', creator_name: 'U', creator_partner_id: null, account_id: null, partner_id: 'p' },
        ...{ revoked_at: clock.now(), cancelling_since: clock.now() },
      });
      await addCall('of-revoked', { api_key_id: 'revoked', due_at: clock.now() });
      await write('protection_rules').insert({
        ...{ scope_id: tenants.partner.id, partner_id: tenants.partner.id, hours: null, countries: null, kinds: null, changed: 'e' },
      });
      await write('users').where({ id: tenants.users.sibling.id }).update({ moving_keys: 'e' });
      await write('users').where({ id: tenants.users.teammate.id }).update({ deleted_at: clock.now(), disabled_at: clock.now() });
      if (kind === 'sqlite') return;
      const changes = [1, 1].map((calls) => ({ campaign_id: 'g', quarter_at: clock.now(), state: 'busy', calls }));
      await write('call_count_changes').insert(changes);
    }

    /** Returns the names of the sweeps that still have rows to process. */
    async function left(): Promise<Record<'byTheClock' | 'always', string[]>> {
      const { read } = database();
      const call = async (contact_id: string) => (await read('calls').where({ contact_id }).first()) as CallRow;
      const hasRow = async (table: string, where: object) => (await read(table).where(where).first()) !== undefined;
      const twice = async (table: string, where: object) => kind === 'postgres' && (await read(table).where(where)).length > 1;
      const named = (tasks: Record<string, boolean>) => Object.keys(tasks).filter((name) => tasks[name]);
      return {
        byTheClock: named({
          lapse: (await call('past')).state === 'queued',
          endForgotten: (await call('forgotten')).state === 'queued',
          recoverFromClockStep: Number((await call('put-off')).due_at) > clock.now(),
          eraseContacts: (await call('ended')).phone !== null,
          sweepSessions: await hasRow('sessions', { id: 'idle' }),
          sweepThrottle: await hasRow('sign_in_attempts', { key: 'over' }),
          resealSecrets: await hasRow('second_factors', { secret: sealedBefore }),
          forgetUsage: await hasRow('api_key_usage', { api_key_id: 'key' }),
          forgetCallCounts: await hasRow('call_counts', { campaign_id: 'g', calls: 1 }),
          sweepCodes: await hasRow('sign_in_codes', { digest: 'over' }),
          deleteEnded: await hasRow('do_not_call', { id: 'over' }),
          forgetAdditions: await hasRow('do_not_call_additions', { phones: '+491' }),
          pruneAudit: await hasRow('audit_events', { id: '0' }),
        }),
        always: named({
          finishDeletions: await hasRow('users', { id: harness.tenants.users.teammate.id }),
          finishMoves: await hasRow('users', { moving_keys: 'e' }),
          cancelCallsOfMarked: (await call('of-revoked')).state === 'queued',
          makeHeldDue: await hasRow('protection_rules', { changed: 'e' }),
          restoreCampaigns: !(await hasRow('campaigns', { id: harness.tenants.siblingCampaign.id })),
          chainAudit: await hasRow('audit_events', { id: '1', seq: null }),
          compactCallCounts: await twice('call_count_changes', { campaign_id: 'g' }),
        }),
      };
    }

    /** Runs the per-minute and the hourly sweeps once. */
    async function passAnHour(): Promise<void> {
      const sealed = logged(/sealed/);
      for (const { run, every } of timers) if (every === minute || every === hour) run();
      await until(async () => logged(/sealed/) > sealed && (await left()).always.length === 0);
    }

    it("runs every sweep once it's due, each minute or hour", async () => {
      await start();
      const all = await left();
      await passAnHour();
      const now = ['recoverFromClockStep', 'resealSecrets'];
      expect((await left()).byTheClock).to.deep.equal(all.byTheClock.filter((task) => !now.includes(task)));
      clock.advance({ hours: 1, milliseconds: 1 });
      await passAnHour();
      await until(async () => (await left()).byTheClock.length === 0);
      expect(await database().read('do_not_call').pluck('id')).to.deep.equal(['lasts']);
      expect(logged(/failed/)).to.equal(0);
    });

    it('runs the other sweeps if some fail', async () => {
      await start();
      await database().write.raw('ALTER TABLE calls RENAME COLUMN not_after TO renamed');
      await database().write.raw('ALTER TABLE sign_in_attempts RENAME COLUMN expires_at TO renamed');
      clock.advance({ hours: 1, milliseconds: 1 });
      await passAnHour();
      const failing = ['lapse', 'endForgotten', 'recoverFromClockStep', 'sweepThrottle'];
      await until(async () => (await left()).byTheClock.every((task) => failing.includes(task)));
      expect((await left()).byTheClock).to.deep.equal(failing);
    });

    it("doesn't end or delete anything while its clock is too far ahead, unless an administrator has accepted the clock", async () => {
      await start();
      const all = await left();
      clock.advance(maxPause.plus({ days: 24 }));
      await passAnHour();
      expect((await left()).byTheClock).to.deep.equal(all.byTheClock);
      const ready = await ask('GET', `${harness.core.managementUrl}/readyz`);
      const { text: metrics } = await ask('GET', `${harness.core.managementUrl}/metrics`);
      expect([ready.status, JSON.parse(ready.text)]).to.deep.equal([200, { status: 'ready', clock: 'ahead' }]);
      expect(metrics).to.match(/callkey_clock_ahead_seconds 26784\d\d\n/);
      expect(logged(/^This machine's clock is 31 days ahead of 2024-03-01T09:00:00.000Z/)).to.equal(1);

      await acceptClock(harness.direct.ports, operator.actor);
      await passAnHour();
      await until(async () => (await left()).byTheClock.length === 0);
      expect(logged(/^the clock is trusted again$/)).to.equal(1);
    });

    it('continues housekeeping if its clock is behind or stopped for a week', async () => {
      await start();
      clock.advance(maxPause);
      await passAnHour();
      await until(async () => (await left()).byTheClock.length === 0);
      clock.advance({ days: -400 });
      await addCall('another', { due_at: clock.now(), not_after: instant(clock.now() - 1) });
      await passAnHour();
      await until(async () => (await database().read('calls').where({ contact_id: 'another', state: 'lapsed' })).length === 1);
      expect(logged(/^The clock/)).to.equal(0);
    });

    it('keeps sessions that start during a slow step of housekeeping', async () => {
      await start();
      const { ports } = harness.direct;
      const log = pino({ level: 'silent' });
      const { promise: swept, resolve, reject } = Promise.withResolvers<void>();
      mock.method(log, 'warn', ({ err }: { err: Error }) => reject(err));
      const retention = {
        ...ports.stores.retention,
        async erase() {
          clock.advance({ minutes: 10 });
          await signIn(harness.core.url, 'ada@example.com');
          return 0;
        },
        // Housekeeping runs this step after the sweep of sessions.
        async forgetCounts() {
          resolve();
          return 0;
        },
      };
      const withSlowStep = { ...ports, stores: { ...ports.stores, retention } };
      const trusted = watchClock(ports.stores.clock, () => undefined);
      const housekeeping = startHousekeeping(withSlowStep, { contacts: 90, auditEvents: 30 }, trusted, log);
      await swept.finally(housekeeping.close);
      expect(await database().read('sessions').where({ started_at: clock.now() }).pluck('user_id')).to.deep.equal([
        harness.tenants.users.account.id,
      ]);
    });

    it('places and cancels calls while its clock is too far ahead, but dials only once the clock is correct', async () => {
      harness = await openCore({ kind, clock, environment: { DIALER: 'simulated' } });
      const { core, tenants } = harness;
      const { keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com'));
      const place = async (requestId: string, more: object) => {
        const body = { requestId, contact: { phone: somePhone() }, ...more };
        expect((await placeCall(core.url, tenants.campaign.id, keyValue, body)).status).to.equal(202);
      };
      const states = async () =>
        Object.fromEntries(
          (await database().read('calls').select('request_id', 'state')).map(({ request_id, state }) => [request_id, state]),
        );
      await place('later', { notBefore: timestamp(plus(clock.now(), hour)), notAfter: timestamp(plus(clock.now(), 2 * hour)) });
      clock.advance({ days: 31 });
      // The housekeeping timers are stopped, so only the dialer can have noticed.
      await until(() => logged(/^This machine's clock is 31 days ahead/) === 1);
      await place('meanwhile', {});
      const cancel = await ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/by-request-id/meanwhile`, { key: keyValue });
      expect([cancel.status, await states()]).to.deep.equal([200, { later: 'queued', meanwhile: 'cancelled' }]);
      clock.advance(Duration.fromObject({ days: -31, hours: 1 }));
      await until(async () => (await states())['later'] !== 'queued');
      expect((await states())['later']).to.equal('dialing');
    });

    if (kind === 'postgres')
      itOnPostgres("can't be told to accept a clock that is more than five minutes ahead of PostgreSQL's", async () => {
        clock = fakeClock(new Date().toISOString());
        await start();
        clock.advance({ hours: 1, minutes: 6 });
        const all = await left();
        await passAnHour();
        expect((await left()).byTheClock).to.deep.equal(all.byTheClock);
        const accepting = acceptClock(harness.direct.ports, operator.actor).then(String, (error: Error) => error.message);
        expect(await accepting).to.match(
          /^This machine's clock is 6\d minutes ahead of PostgreSQL's\. .* until you correct the one that's wrong\.$/,
        );
      });
  });
});
