import { expect } from 'chai';
import { plus } from '../../../core/domain/instant.ts';
import { parseDatabaseUrl } from '../../../core/storage/engine/database.ts';
import { openDatabase } from '../../../core/storage/engine/open.ts';
import { shardOf, shardsOf } from '../../../core/storage/engine/shards.ts';
import { migrate } from '../../../core/storage/migrate.ts';
import { createCampaignIn } from '../../support/citus.ts';
import { spawnCore } from '../../support/core.ts';
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
        await shardOf(direct.storage.database, campaign_id).write.batchInsert('calls', rows, 30);
      }
    const claim = (limit: number) => dialing.claim(limit, 'simulated', now, plus(now, 30_000));
    const claimed = Map.groupBy(await claim(30), ({ campaignId }) => accountOf.get(campaignId));
    expect([account, siblingAccount, otherAccount].map(({ id }) => claimed.get(id)?.length)).to.deep.equal([10, 10, 10]);
    for (const { write } of shardsOf(direct.storage.database)) await write('calls').where({ account_id: otherAccount.id }).delete();
    const campaigns: string[] = [];
    for (let n = 0; n < 8; n++) campaigns.push(...(await claim(1)).map(({ campaignId }) => campaignId));
    const counts = [...Map.groupBy(campaigns, (id) => id).values()].map(({ length }) => length);
    expect(counts.toSorted((a, b) => a - b)).to.deep.equal([2, 2, 4]);
  });

  it('are migrated by a new core that connects to the coordinator, while an earlier core places calls', async () => {
    const [coordinator, first] = its.cluster.nodes;
    const earlier = await spawnCore(url, { DIALER: 'off' });
    const { key } = await createPartnerKey(earlier);
    const campaigns = [0, 1].map((shard) => createCampaignIn(direct.ports, tenants.account.id, 2, (own) => own === shard));
    const { database } = direct.storage;
    for (const { write } of shardsOf(database)) await write.raw('DROP INDEX calls_by_api_key');
    await database.write('schema_migrations').where({ name: '030-calls-by-key-additive' }).delete();
    const elsewhere = openDatabase(parseDatabaseUrl(first.url(name)), 'make');
    const error = await migrate(elsewhere).catch((reason: Error) => reason.message);
    expect(error).to.contain("isn't the coordinator");
    await elsewhere.close();
    let isOver = false;
    const placing = campaigns.map(async (campaign) => {
      const { id } = await campaign;
      const statuses = new Set<number>();
      for (let n = 0; !isOver; n++) statuses.add(await place(earlier, id, key, `during-${n}`));
      return [...statuses];
    });
    const newer = await spawnCore(coordinator.url(name), { DIALER: 'off' });
    isOver = true;
    expect(await Promise.all(placing)).to.deep.equal([[202], [202]]);
    expect(newer.stdout.join()).to.contain('"migrations":["030-calls-by-key-additive"]');
    const found = await database.query(
      `SELECT 1 FROM pg_indexes WHERE indexname = 'calls_by_api_key' AND schemaname LIKE 'callkey_shard_%'`,
    );
    expect(found.length).to.equal(2);
    for (const core of [earlier, newer]) await core.stop('SIGTERM');
  });
}
