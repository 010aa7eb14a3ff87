import { expect } from 'chai';
import { callLane, callLanes, shardNumber } from '../../../core/storage/engine/call-lanes.ts';
import { createShards } from '../../../core/storage/engine/postgres/cluster.ts';
import { adminOn } from '../../support/commands.ts';
import { type CoreProcess, spawnCore } from '../../support/core.ts';
import { freshDatabase } from '../../support/databases.ts';
import { ask } from '../../support/http.ts';
import { formatUrl, readPage } from '../../support/postgres-node.ts';
import { createTenants, openDirect, signIn } from '../../support/tenants.ts';
import { until } from '../../support/until.ts';
import { createPartnerKey, place, type SharedCluster } from './shared.ts';

export function testCreation(its: SharedCluster): void {
  describe('in a new database', () => {
    it('are created once, by `admin shards create`, if Citus and its settings allow it', async () => {
      const name = await its.cluster.createDatabase();
      const [coordinator, node] = its.cluster.nodes;
      const { admin, json } = adminOn(coordinator.url(name));
      await admin(['migrate']);
      for (const number of ['0', '257', '1.5', 'many'])
        expect(await admin(['shards', 'create', number]))
          .to.deep.include({ code: 2 })
          .and.property('stderr')
          .to.contain('from 1 to 256');
      const elsewhere = await adminOn(await freshDatabase('sqlite')).admin(['shards', 'create', '2']);
      expect([elsewhere.code, elsewhere.stderr]).to.deep.equal([
        2,
        'error: Shards need PostgreSQL with Citus. DATABASE_URL names a SQLite file.\n',
      ]);
      await coordinator.query(name, 'SELECT citus_remove_node($$127.0.0.1$$, nodeport) FROM pg_dist_node WHERE groupid > 0');
      expect((await admin(['shards', 'create', '2'])).stderr).to.contain(
        "- no node may have shards: run SELECT citus_add_node('HOST', PORT)",
      );
      for (const { port } of its.cluster.nodes.slice(1)) await coordinator.query(name, `SELECT citus_add_node('127.0.0.1', ${port})`);
      expect(await json('shards', 'create', '2')).to.deep.equal({ shards: 2, movedCalls: 0 });
      const again = await admin(['shards', 'create', '2']);
      expect([again.code, again.stderr]).to.deep.equal([4, "error: The database already has 2 shards. Their number can't be changed.\n"]);
      expect((await admin(['check'])).stdout).to.contain('ok     shards: 2 shards');
      expect((await adminOn(node.url(name)).admin(['check'])).stdout).to.contain('ok     shards: 2 shards');
      expect((await admin(['backup', '/tmp/never-written'])).stderr).to.contain("wouldn't be consistent");
    });

    it("aren't created if Citus is missing or too old, or a node has wrong settings or can't be reached, and the error says so", async () => {
      const plain = await adminOn(await freshDatabase('postgres')).admin(['shards', 'create', '2']);
      expect([plain.code, plain.stderr]).to.deep.equal([
        4,
        "error: The database can't have shards:\n- this PostgreSQL doesn't have Citus: install the extension on each node, then run there: CREATE EXTENSION citus\n",
      ]);
      const name = await its.cluster.createDatabase();
      const [coordinator, node] = its.cluster.nodes;
      const { admin } = adminOn(coordinator.url(name));
      await admin(['migrate']);
      const early = await its.cluster.createEarlier('12.1-1');
      await adminOn(early).admin(['migrate']);
      expect((await adminOn(early).admin(['shards', 'create', '2'])).stderr).to.contain(
        '- Citus 12.1-1 is too old: install version 13 or later, then run on each node: ALTER EXTENSION citus UPDATE',
      );
      await node.query('postgres', `ALTER SYSTEM SET citus.recover_2pc_interval = '1min'`);
      await node.query('postgres', 'SELECT pg_reload_conf()');
      const slow = `- citus.recover_2pc_interval is 60000 on 127.0.0.1:${node.port}: set it to 2s, because`;
      await until(async () => (await admin(['shards', 'create', '2'])).stderr.includes(slow));
      await node.query('postgres', 'ALTER SYSTEM RESET citus.recover_2pc_interval');
      await node.stop();
      expect((await admin(['shards', 'create', '2'])).stderr).to.contain(`- the node 127.0.0.1:${node.port} can't be reached: `);
      await node.start();
    });
  });

  it('store a call that is being placed while they are created', async () => {
    const name = await its.cluster.createDatabase();
    const [coordinator] = its.cluster.nodes;
    await adminOn(coordinator.url(name)).admin(['migrate']);
    await using direct = await openDirect(coordinator.url(name));
    await using other = await openDirect(coordinator.url(name));
    const { campaign } = await createTenants(direct.ports);
    const placing = await other.storage.database.write.transaction();
    await placing.raw(
      `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, placed_at)
       SELECT 'c', id, account_id, 'r', '', 'queued', 0 FROM campaigns WHERE id = ?`,
      [campaign.id],
    );
    const { database } = direct.storage;
    // The deletion of the campaign was interrupted.
    await database
      .write('campaigns')
      .where({ id: campaign.id })
      .update({ id: `deleting-${campaign.id}` });
    const creating = createShards(database, 2);
    await until(async () => (await coordinator.query(name, 'SELECT 1 FROM pg_locks WHERE NOT granted')).length > 0);
    await placing.commit();
    await creating;
    expect(await callLane(database, campaign.id).read('calls').pluck('contact_id')).to.deep.equal(['c']);
  });

  it('store the existing calls of a database once the commands in scaling.md have run', async () => {
    const name = await its.cluster.createDatabase();
    const [coordinator] = its.cluster.nodes;
    const url = coordinator.url(name);
    const { admin, json } = adminOn(url);
    // Creates 4 shards instead of 32, which would take longer.
    const commands = readPage('sh', '### Set it up').map((line) => line.replace('npm run admin -- ', '').replace('32', '4').split(' '));
    const [migrate, create, check] = commands;
    if (!migrate || !create || !check) throw new Error('A command is missing on the page.');
    await admin(migrate);
    const direct = await openDirect(url);
    const tenants = await createTenants(direct.ports);
    const core = await spawnCore(url);
    const { key, partner } = await createPartnerKey(core);
    const ids = [tenants.campaign.id, tenants.siblingCampaign.id];
    for (let n = 0; n < 10; n++) for (const id of ids) expect(await place(core, id, key, `r${n}`)).to.equal(202);
    const before = await listCalls(core, partner);
    expect((await admin(create)).stderr).to.contain('is connected to the database');
    await core.stop('SIGTERM');
    await direct.close();
    const refused = await admin(create.slice(0, -1));
    expect([refused.code, refused.stderr.includes('This would move 20 calls')], refused.stderr).to.deep.equal([4, true]);
    expect(await json(...create)).to.deep.equal({ shards: 4, movedCalls: 20 });
    expect((await admin(check)).stdout).to.contain('ok     shards: 4 shards');

    const again = await spawnCore(formatUrl([...its.cluster.nodes].reverse(), name));
    const partnerAgain = await signIn(again.url, 'pat@example.com');
    expect(await listCalls(again, partnerAgain)).to.deep.equal(before);
    // Each request repeats a call that was moved.
    for (const id of ids) expect(await place(again, id, key, 'r3')).to.equal(202);
    expect(await listCalls(again, partnerAgain)).to.deep.equal(before);
    const moved = await openDirect(url);
    for (const [n, shard] of callLanes(moved.storage.database).entries())
      for (const { campaign_id } of await shard.read('calls').select('campaign_id')) expect(shardNumber(campaign_id, 4)).to.equal(n);
    await moved.close();

    const node = await its.cluster.startAnother(name);
    const shard = `callkey_shard_${shardNumber(tenants.campaign.id, 4)}`;
    const [add, copy, move, where] = readPage('sql', '**Add a node**', [...its.cluster.nodes, node]);
    await coordinator.query(name, add ?? '');
    await coordinator.query(name, copy ?? '');
    await coordinator.query(name, move?.replace('callkey_shard_7', shard) ?? '');
    expect((await coordinator.query(name, where ?? '')).filter(({ nodeport }) => nodeport === node.port)).to.deep.equal([
      { shard, nodename: '127.0.0.1', nodeport: node.port },
    ]);
    expect((await admin(check)).stdout).to.contain('ok     shards: 4 shards');
    for (const id of ids) expect(await place(again, id, key, 'r20')).to.equal(202);
    const onIt = await spawnCore(node.url(name));
    for (const id of ids) expect(await place(onIt, id, key, 'r20')).to.equal(202);
    for (const each of [again, onIt]) await each.stop('SIGTERM');
  });
}

async function listCalls({ url }: CoreProcess, cookie: string): Promise<unknown> {
  const { status, json } = await ask('GET', `${url}/console/calls`, { cookie });
  expect(status).to.equal(200);
  return json;
}
