import { expect } from 'chai';
import { plus } from '../../../core/domain/instant.ts';
import { callLane, callLanes } from '../../../core/storage/engine/call-lanes.ts';
import { parseDatabaseUrl } from '../../../core/storage/engine/database.ts';
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

  it('give each account the same share of a claim, however many shards have its calls', async () => {
    const { account, siblingAccount, otherAccount } = tenants;
    const { dialing } = direct.ports.stores;
    const now = direct.ports.clock.now();
    const accountOf = new Map<string, string>();
    for (const [{ id: account_id }, shards] of [[account, [0, 1]] as const, [siblingAccount, [0]] as const, [otherAccount, [1]] as const])
      for (const shard of shards) {
        const { id: campaign_id } = await createCampaignIn(direct.ports, account_id, 2, (own) => own === shard);
        accountOf.set(campaign_id, account_id);
        const call = { campaign_id, account_id, api_key_id: 'k', state: 'queued', placed_at: now, due_at: now } as const;
        const rows = Array.from({ length: 30 }, (_, n) => ({
          ...{ ...call, contact_id: `${campaign_id}-${n}`, request_id: `${n}`, phone: somePhone() },
        }));
        await callLane(direct.storage.database, campaign_id).write.batchInsert('calls', rows, 30);
      }
    const claim = (limit: number) => dialing.claim(limit, 'simulated', now, plus(now, 30_000));
    const claimed = Map.groupBy(await claim(30), ({ campaignId }) => accountOf.get(campaignId));
    expect([account, siblingAccount, otherAccount].map(({ id }) => claimed.get(id)?.length)).to.deep.equal([10, 10, 10]);
    for (const { write } of callLanes(direct.storage.database)) await write('calls').where({ account_id: otherAccount.id }).delete();
    const campaigns: string[] = [];
    for (let n = 0; n < 8; n++) campaigns.push(...(await claim(1)).map(({ campaignId }) => campaignId));
    const counts = [...Map.groupBy(campaigns, (id) => id).values()].map(({ length }) => length);
    expect(counts.toSorted((a, b) => a - b)).to.deep.equal([2, 2, 4]);
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
    const core = await spawnCore(coordinator.url(name), { DIALER: 'off' });
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
