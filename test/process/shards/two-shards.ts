import { expect } from 'chai';
import { operator } from '../../../core/domain/audit/audit.ts';
import { resumeDialing, stopDialing } from '../../../core/domain/calls/stops.ts';
import { createAccount } from '../../../core/domain/directory/directory.ts';
import { oneDay, plus } from '../../../core/domain/instant.ts';
import { setContactLimits, setPace } from '../../../core/domain/protection/rules.ts';
import { callLane, callLanes } from '../../../core/storage/engine/call-lanes.ts';
import { parseDatabaseUrl } from '../../../core/storage/engine/database.ts';
import type { CallRow } from '../../../core/storage/engine/tables.ts';
import { migrate } from '../../../core/storage/migrate.ts';
import { openDatabase } from '../../../core/storage/storage.ts';
import { spawnCore } from '../../support/core.ts';
import { toUnreleased } from '../../support/databases.ts';
import { createCampaignIn } from '../../support/postgres-node.ts';
import { createTenants, type DirectAccess, openDirect, somePhone, type Tenants } from '../../support/tenants.ts';
import { createPartnerKey, place, type SharedCluster } from './shared.ts';

export function testTwoShards(its: SharedCluster): void {
  let url: string;
  let name: string;
  let direct: DirectAccess;
  let tenants: Tenants;
  before(async () => {
    url = await its.cluster.createWithShards(2);
    name = url.slice(url.lastIndexOf('/') + 1);
    direct = await openDirect(url);
    tenants = await createTenants(direct.ports);
  });
  after(() => direct.close());

  /** Adds calls to a campaign, in its shard. */
  const addCalls = async (ids: { campaign_id: string; account_id: string }, count: number, more: Partial<CallRow> = {}) => {
    const now = direct.ports.clock.now();
    const rows = Array.from({ length: count }, (_, n) => ({
      ...{ ...ids, api_key_id: 'k', contact_id: `${ids.campaign_id}-${n}`, request_id: `${n}` },
      ...{ state: 'queued' as const, phone: somePhone(), placed_at: now, due_at: now, ...more },
    }));
    await callLane(direct.storage.database, ids.campaign_id).write.batchInsert('calls', rows, 30);
  };

  it('give each account the same share of a claim, however many shards have its calls', async () => {
    const { account, siblingAccount, otherAccount } = tenants;
    const { dialing } = direct.ports.stores;
    const accountOf = new Map<string, string>();
    for (const [{ id: account_id }, shards] of [[account, [0, 1]] as const, [siblingAccount, [0]] as const, [otherAccount, [1]] as const])
      for (const shard of shards) {
        const { id: campaign_id } = await createCampaignIn(direct.ports, account_id, 2, (own) => own === shard);
        accountOf.set(campaign_id, account_id);
        await addCalls({ campaign_id, account_id }, 30);
      }
    const now = direct.ports.clock.now();
    const claim = (limit: number) => dialing.claim(limit, 'simulated', now, plus(now, 30_000));
    const claimed = Map.groupBy(await claim(30), ({ campaignId }) => accountOf.get(campaignId));
    expect([account, siblingAccount, otherAccount].map(({ id }) => claimed.get(id)?.length)).to.deep.equal([10, 10, 10]);
    for (const { write } of callLanes(direct.storage.database)) await write('calls').where({ account_id: otherAccount.id }).delete();
    const campaigns: string[] = [];
    for (let n = 0; n < 8; n++) campaigns.push(...(await claim(1)).map(({ campaignId }) => campaignId));
    const counts = [...Map.groupBy(campaigns, (id) => id).values()].map(({ length }) => length);
    expect(counts.toSorted((a, b) => a - b)).to.deep.equal([2, 2, 4]);
  });

  it('have one pace, one number of live calls, one count of contacts and the same stops, whichever node a core is connected to', async () => {
    // Claims also take what earlier tests have left in the queue.
    for (const { write } of callLanes(direct.storage.database)) await write('calls').delete();
    const { id: accountId } = await createAccount(direct.ports, operator, 'Paced', tenants.partner.id);
    const campaigns = await Promise.all([0, 1].map((shard) => createCampaignIn(direct.ports, accountId, 2, (own) => own === shard)));
    const scope = { scope: 'account', id: accountId } as const;
    const [, first, second] = its.cluster.nodes;
    await using one = await openDirect(first.url(name));
    await using other = await openDirect(second.url(name));
    const stores = [one, other].map(({ ports }) => ports.stores.dialing);
    const now = () => direct.ports.clock.now();
    const claim = async () => (await Promise.all(stores.map((store) => store.claim(10, 'webhook', now(), plus(now(), 30_000))))).flat();
    const add = async (count: number, more: Partial<CallRow> = {}) => {
      for (const { id: campaign_id } of campaigns) await addCalls({ campaign_id, account_id: accountId }, count, more);
    };
    await setContactLimits(direct.ports, operator, scope, { calls: 1, days: 1, minutesBetween: 0 });
    await add(3, { phone: '+493012345678' });
    expect([...(await claim()), ...(await claim())]).to.have.length(1);
    await setContactLimits(direct.ports, operator, scope, null);
    for (const { write } of callLanes(direct.storage.database)) await write('calls').where({ account_id: accountId }).delete();

    await setPace(direct.ports, operator, scope, { perSecond: null, liveCalls: 3 });
    await add(20);
    expect([...(await claim()), ...(await claim()), ...(await claim())]).to.have.length(3);

    await setPace(direct.ports, operator, scope, { perSecond: 5, liveCalls: null });
    const next = async () =>
      (await direct.storage.database.read('dialing_paces').where({ scope_id: accountId }).first('next_at'))?.next_at ?? 0;
    const [start, since] = [await next(), now()];
    let left = 0;
    while (left < 8) left += (await claim()).length;
    expect((await next()) - Math.max(start, since)).to.be.at.least(left * 200);

    await setPace(direct.ports, operator, scope, { perSecond: null, liveCalls: null });
    const stopping = stopDialing(one.ports, operator, scope);
    // Otherwise, the stop waits for these hand-offs.
    for (const { write } of callLanes(direct.storage.database))
      await write('calls').where({ account_id: accountId, state: 'dialing' }).update({ handoff: 'taken' });
    const { stop, queuedCalls } = await stopping;
    expect([await claim(), queuedCalls > 0]).to.deep.equal([[], true]);
    await resumeDialing(other.ports, operator, stop.id);
    expect(await claim()).to.have.length.greaterThan(10);
  });

  it('count who answered, also if it replaces an unknown outcome', async () => {
    const { id: account_id } = await createAccount(direct.ports, operator, 'Answered', tenants.partner.id);
    const now = direct.ports.clock.now();
    const { dialing, callList } = direct.ports.stores;
    const isUnknown = { state: 'unknown', handoff: 'taken', ended_at: now, due_at: null } as const;
    for (const shard of [0, 1]) {
      const { id: campaign_id } = await createCampaignIn(direct.ports, account_id, 2, (own) => own === shard);
      await addCalls({ campaign_id, account_id }, 1, isUnknown);
      const outcome = { state: 'completed', detail: null, endedAt: now, durationSeconds: null, answeredBy: 'machine' } as const;
      for (const _ of ['first', 'repeat']) await dialing.recordOutcome(`${campaign_id}-0`, outcome, now);
      const counts = (await callList.summary(campaign_id, plus(now, -oneDay))).map(({ state, answeredBy, calls }) => [
        state,
        answeredBy,
        calls,
      ]);
      expect(counts).to.have.deep.members([
        ['unknown', null, -1],
        ['completed', 'machine', 1],
      ]);
    }
  });

  it('are migrated by a core, if it connects to the coordinator', async () => {
    const [coordinator, first] = its.cluster.nodes;
    await using onCoordinator = await openDirect(coordinator.url(name));
    const { database } = onCoordinator.storage;
    await toUnreleased(database);
    const elsewhere = openDatabase(parseDatabaseUrl(first.url(name)), 'make');
    const error = await migrate(elsewhere).catch((reason: Error) => reason.message);
    expect(error).to.contain("isn't the coordinator");
    await elsewhere.close();
    const core = await spawnCore(coordinator.url(name));
    expect(core.stdout.join()).to.contain('"migrations":["001-schema"]');
    const renamed = `SELECT 1 FROM information_schema.columns WHERE column_name = 'late_outcome_at' AND table_schema LIKE 'callkey_shard_%'`;
    expect((await database.query(renamed)).length).to.equal(2);
    const { key } = await createPartnerKey(core);
    for (const shard of [0, 1]) {
      const { id } = await createCampaignIn(direct.ports, tenants.account.id, 2, (own) => own === shard);
      expect(await place(core, id, key, 'after')).to.equal(202);
    }
    await core.stop('SIGTERM');
  });
}
