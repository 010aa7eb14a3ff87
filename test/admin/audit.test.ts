import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { createPartner } from '../../core/domain/directory/directory.ts';
import { instant } from '../../core/domain/instant.ts';
import { fakeClock, testRandomness } from '../support/clock.ts';
import { bareEnvironment, describeAdmin, runScript } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { openForEach } from '../support/suites.ts';
import { createTenants, insertCalls, openDirect } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describeAdmin('admin, for audit events', ({ admin, json, kind, database }) => {
  const clock = fakeClock();
  const direct = openForEach(() => openDirect(database(), clock));
  beforeEach(() => clock.set('2026-11-21T09:00:00.000Z'));

  const chain = () => direct.ports.stores.auditChain;
  const events = () => direct.storage.database.write('audit_events');
  /** Adds a partner, and copies of its event. */
  async function addEvents(count: number): Promise<void> {
    const { id } = await createPartner(direct.ports, operator, 'Partner');
    const added = await events().where({ subject_id: id });
    const copies = Array.from({ length: count - 1 }, () => ({ ...added[0], id: testRandomness.id() }));
    if (copies.length > 0) await direct.storage.database.write.batchInsert('audit_events', copies, 50);
  }
  async function verify(...args: string[]): Promise<{ code: number; faults: string[]; seal: string; events: number }> {
    const { code, stdout } = await admin(['audit', 'verify', ...args, '--json']);
    return { code, ...JSON.parse(stdout) };
  }

  it('verifies the chain, and reports the number of events not yet chained', async () => {
    expect(await json('audit', 'verify')).to.deep.include({ ok: true, events: 0, unchained: 0 });
    await addEvents(3);
    expect(await json('audit', 'verify')).to.deep.include({ ok: true, events: 0, unchained: 3 });
    expect(await chain().extend()).to.equal(3);
    await addEvents(1);
    expect(await json('audit', 'verify')).to.deep.include({ ok: true, events: 3, unchained: 1, pruned: 0, faults: [] });
    expect((await admin(['audit', 'verify'])).stdout).to.match(/^ok {5}3 events verified\. Seal: 3:[0-9a-f]{64}\n.*1 newer event\./);
  });

  it('finds a single chain after several cores have extended it concurrently', async () => {
    await using other = await openDirect(database(), clock);
    // More than one transaction adds, but not so many that waiting for the others takes seconds on a busy machine.
    await addEvents(250);
    await Promise.allSettled([chain().extend(), other.ports.stores.auditChain.extend(), chain().extend()]);
    // One that waited too long for another leaves the rest to the next.
    await chain().extend();
    expect(await verify()).to.deep.include({ code: 0, events: 250, faults: [] });
  });

  it('fails if an event was changed, and names it, and with an earlier seal also if the whole chain was rebuilt', async () => {
    await addEvents(5);
    await chain().extend();
    const { seal } = await verify();
    await addEvents(1);
    await chain().extend();
    expect((await verify(seal)).code).to.equal(0);
    await events().where({ seq: 3 }).update({ actor_name: 'Nobody' });
    const faults = ["Event 3 doesn't match the one before it: one of the two was modified."];
    expect(await verify()).to.deep.include({ code: 1, faults });
    await events().where({ seq: 2 }).delete();
    await events().update({ seq: null, hash: null });
    await direct.storage.database.write('audit_chain').update({ seq: 0, hash: '' });
    await chain().extend();
    expect([(await verify()).code, (await verify(seal)).faults]).to.deep.equal([0, ["Event 5 doesn't match the seal."]]);
    expect((await admin(['audit', 'verify', 'x'])).code).to.equal(2);
  });

  it('shows in `retention show` how long audit events are kept', async () => {
    await addEvents(1);
    await chain().extend();
    expect(await json('retention', 'show')).to.deep.equal({
      ...{ retentionDays: 90, erasable: 0, oldestEndedAt: null, lapseDays: 30 },
      ...{ auditRetentionDays: null, oldestEventAt: '2026-11-21T09:00:00.000Z' },
    });
    expect((await admin(['retention', 'show'])).stdout)
      .to.contain('No core has recorded its retention settings yet')
      .and.to.contain('Audit events: kept')
      .and.to.contain('erased 90 days after');
  });

  it("deletes in `retention run` only what a core's recorded retention periods allow", async () => {
    clock.set('2025-01-01T09:00:00.000Z');
    await addEvents(2);
    await chain().extend();
    const run = (env: Record<string, string>, ...options: string[]) =>
      runScript('core/admin.ts', ['retention', 'run', '--json', ...options], { env: { DATABASE_URL: database(), ...env } });
    const answer = async (ended: ReturnType<typeof run>) => JSON.parse((await ended).stdout);
    const unknown = await run({});
    expect(unknown.code).to.equal(4);
    expect(unknown.stderr).to.include('No core has recorded its RETENTION_DAYS');
    expect(await answer(run({ RETENTION_DAYS: '365' }))).to.include({ retentionDays: 365, erased: 0, auditEvents: 0 });
    const core = await startCoreHere(database(), { environment: { RETENTION_DAYS: '365' } });
    const { retention } = direct.ports.stores;
    await until(async () => (await retention.recordedDays())?.contacts === 365);
    await core.close();
    const other = await run({ RETENTION_DAYS: '90' });
    expect([other.code, JSON.parse(other.stderr).error.message]).to.deep.equal([
      4,
      'RETENTION_DAYS is 90 here, and was 365 when a core last started. Unset it here, or start the core with the new value first.',
    ]);
    expect(await retention.recordDays({ contacts: 365, auditEvents: 400 })).to.deep.equal({ contacts: 365, auditEvents: null });
    expect(await retention.recordDays({ contacts: 365, auditEvents: 400 })).to.equal(null);
    const due = { retentionDays: 365, erased: 0, auditRetentionDays: 400, auditEvents: 2 };
    expect(await answer(run({}, '--dry-run'))).to.deep.equal({ dryRun: true, ...due });
    expect(await answer(run({}))).to.deep.equal({ dryRun: false, ...due });
    expect(await verify()).to.deep.include({ code: 0, pruned: 2 });
  });

  it('records what `retention run` erased before it was interrupted', async () => {
    const tenants = await createTenants(direct.ports);
    const ids = Array.from({ length: 10_000 }, (_, n) => `old-${n}`);
    await insertCalls(direct, tenants, ids, { state: 'completed', due_at: null, ended_at: instant(1) });
    const { write } = direct.storage.database;
    // Each call takes about a millisecond. Otherwise, the command may end before the signal on a busy machine.
    for (const sql of kind === 'sqlite'
      ? ['CREATE TRIGGER slow AFTER UPDATE ON calls BEGIN SELECT length(hex(zeroblob(500000))); END']
      : [
          `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.001); RETURN NULL; END'`,
          'CREATE TRIGGER slow AFTER UPDATE ON calls FOR EACH ROW EXECUTE FUNCTION slow()',
        ])
      await write.raw(sql);
    const remaining = async () => (await direct.ports.stores.retention.countErasable(instant(2))).erasable;
    const env = { ...bareEnvironment, DATABASE_URL: database(), RETENTION_DAYS: '30' };
    const child = spawn(process.execPath, ['core/admin.ts', 'retention', 'run'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    const ending = Promise.all([once(child, 'exit'), text(child.stderr)]);
    await until(async () => (await remaining()) < 10_000);
    child.kill('SIGINT');
    const [[code], stderr] = await ending;
    expect([code, stderr]).to.deep.equal([1, 'error: Received SIGINT. Run the command again to erase the rest.\n']);
    const erased = 10_000 - (await remaining());
    expect(erased).to.be.within(1, 9_999);
    expect(await events().where({ action: 'retention.run' }).pluck('subject_name')).to.deep.equal([`${erased} calls`]);
  });
});
