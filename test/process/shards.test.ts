import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { createCampaign } from '../../core/domain/directory/tenancies.ts';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openDatabase } from '../../core/storage/engine/open.ts';
import { shardNumber, shardOf, shardsOf } from '../../core/storage/engine/shards.ts';
import { migrate, schemaState, toSchemaState } from '../../core/storage/migrations/index.ts';
import { freePort } from '../../scripts/support/postgres.ts';
import { adminOn } from '../support/admin.ts';
import { type Cluster, formatUrl, missingCitus, startCluster } from '../support/citus.ts';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { freshDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { skip } from '../support/skip.ts';
import { createKey, createTenants, openDirect, placeCall, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const outcomeOf = ({ status }: { status: number }) => status;

describe('shards', function () {
  this.timeout(120_000);
  let cluster: Cluster;
  before(async function () {
    const missing = missingCitus();
    if (missing) return skip(this, missing);
    cluster = await startCluster(['fsync=off']);
  });
  after(() => cluster?.stop());

  describe('in a new database', () => {
    it('are created once, by `admin shards create`, if Citus and its settings allow it', async () => {
      const name = await cluster.createDatabase();
      const [coordinator, node] = cluster.nodes;
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
      for (const { port } of cluster.nodes.slice(1)) await coordinator.query(name, `SELECT citus_add_node('127.0.0.1', ${port})`);
      expect(await json('shards', 'create', '2')).to.deep.equal({ shards: 2, movedCalls: 0 });
      const again = await admin(['shards', 'create', '2']);
      expect([again.code, again.stderr]).to.deep.equal([4, "error: The database already has 2 shards. Their number can't be changed.\n"]);
      expect((await admin(['check'])).stdout).to.contain('ok     shards: 2 shards');
      expect((await adminOn(node.url(name)).admin(['check'])).stdout).to.contain('ok     shards: 2 shards');
      expect((await admin(['backup', '/tmp/never-written'])).stderr).to.contain("wouldn't be from a single moment");
    });

    it("are refused with the reason if this PostgreSQL doesn't have Citus, or a node has wrong settings or can't be reached", async () => {
      const plain = await adminOn(await freshDatabase('postgres')).admin(['shards', 'create', '2']);
      expect([plain.code, plain.stderr]).to.deep.equal([
        4,
        "error: The database can't have shards:\n- this PostgreSQL doesn't have Citus: install the extension on each node, then run there: CREATE EXTENSION citus\n",
      ]);
      const name = await cluster.createDatabase();
      const [coordinator, node] = cluster.nodes;
      const { admin } = adminOn(coordinator.url(name));
      await admin(['migrate']);
      await node.query('postgres', `ALTER SYSTEM SET citus.recover_2pc_interval = '1min'`);
      await node.query('postgres', 'SELECT pg_reload_conf()');
      const slow = `- citus.recover_2pc_interval is 60000 on 127.0.0.1:${node.port}: set it to 2s: `;
      await until(async () => (await admin(['shards', 'create', '2'])).stderr.includes(slow));
      await node.query('postgres', 'ALTER SYSTEM RESET citus.recover_2pc_interval');
      await stop(node);
      expect((await admin(['shards', 'create', '2'])).stderr).to.contain(`- the node 127.0.0.1:${node.port} can't be reached: `);
      await node.start();
    });
  });

  it('get the calls that a database already has, and no other release uses that database', async () => {
    const name = await cluster.createDatabase();
    const [coordinator] = cluster.nodes;
    const url = coordinator.url(name);
    const { admin, json } = adminOn(url);
    await admin(['migrate']);
    const direct = await openDirect(url);
    const tenants = await createTenants(direct.ports);
    const core = await spawnCore(url, { DIALER: 'off' });
    const { key, partner } = await keyOf(core);
    const ids = [tenants.campaign.id, tenants.siblingCampaign.id];
    for (let n = 0; n < 10; n++) for (const id of ids) expect(await placed(core, id, key, `r${n}`)).to.equal(202);
    const before = await listed(core, partner);
    expect((await admin(['shards', 'create', '8', '--move-calls'])).stderr).to.contain('is connected to the database');
    await core.stop('SIGTERM');
    await direct.close();
    const refused = await admin(['shards', 'create', '8']);
    expect([refused.code, refused.stderr.includes('This would move 20 calls')], refused.stderr).to.deep.equal([4, true]);
    expect(await json('shards', 'create', '8', '--move-calls')).to.deep.equal({ shards: 8, movedCalls: 20 });

    const names = (await coordinator.query<{ name: string }>(name, 'SELECT name FROM schema_migrations')).map((row) => row.name);
    expect(() => toSchemaState(names)).to.throw('was migrated by a newer version of Callkey (migrations: shards-8)');
    const again = await spawnCore(formatUrl([...cluster.nodes].reverse(), name), { DIALER: 'off' });
    const partnerAgain = await signIn(again.url, 'pat@example.com');
    expect(await listed(again, partnerAgain)).to.deep.equal(before);
    // Each is a repeat of a call that was moved.
    for (const id of ids) expect(await placed(again, id, key, 'r3')).to.equal(202);
    expect(await listed(again, partnerAgain)).to.deep.equal(before);
    const moved = await openDirect(url);
    for (const [n, shard] of shardsOf(moved.storage.database).entries())
      for (const { campaign_id } of await shard.read('calls').select('campaign_id')) expect(shardNumber(campaign_id, 8)).to.equal(n);
    await moved.close();
    await again.stop('SIGTERM');
  });

  it('are migrated with the other tables, by a core that connects to the coordinator', async () => {
    const url = await cluster.createWithShards(2);
    const name = new URL(url.replace(/@.*\//, '@host/')).pathname.slice(1);
    const location = (node: Cluster['nodes'][number]) => parseDatabaseUrl(node.url(name)) ?? { kind: 'sqlite' as const, filename: '' };
    const database = openDatabase(location(cluster.nodes[0]), 'make');
    await schemaState(database);
    for (const { write } of shardsOf(database)) await write.raw('DROP INDEX calls_by_api_key');
    await database.write('schema_migrations').where({ name: '030-calls-by-key-additive' }).delete();
    const elsewhere = openDatabase(location(cluster.nodes[1]), 'make');
    const error = await migrate(elsewhere).catch((reason: Error) => reason.message);
    expect(error).to.contain("isn't the coordinator");
    await elsewhere.close();
    expect(await migrate(database)).to.deep.equal({ applied: ['030-calls-by-key-additive'], added: [] });
    const found = await database.query(
      `SELECT 1 FROM pg_indexes WHERE indexname = 'calls_by_api_key' AND schemaname LIKE 'callkey_shard_%'`,
    );
    expect(found.length).to.equal(2);
    await database.close();
  });

  describe('on nodes that fail', () => {
    let core: CoreProcess;
    let keys: Awaited<ReturnType<typeof keyOf>>;
    let gate: Awaited<ReturnType<typeof gateTo>>;
    let name: string;
    /** Campaigns whose calls are on each of the nodes that have shards. */
    let onNode: { first: string; second: string };

    before(async () => {
      const [coordinator, , second] = cluster.nodes;
      gate = await gateTo(second.port);
      name = await cluster.createDatabase();
      await coordinator.query(
        name,
        `SELECT citus_update_node(nodeid, '127.0.0.1', ${gate.port}) FROM pg_dist_node WHERE nodeport = ${second.port}`,
      );
      const { admin } = adminOn(coordinator.url(name));
      await admin(['migrate']);
      await using direct = await openDirect(coordinator.url(name));
      const tenants = await createTenants(direct.ports);
      let other = tenants.siblingCampaign;
      while (shardNumber(other.id, 8) === shardNumber(tenants.campaign.id, 8))
        other = await createCampaign(direct.ports, operator, 'In another shard', tenants.siblingAccount.id);
      onNode = { second: tenants.campaign.id, first: other.id };
      await direct.close();
      const created = await admin(['shards', 'create', '8']);
      expect(created.stdout, created.stderr).to.equal('Created 8 shards.\n');
      const placements = await coordinator.query<{ schema: string; port: number }>(
        name,
        `SELECT split_part(table_name::text, '.', 1) AS schema, nodeport AS port FROM citus_shards WHERE table_name::text LIKE '%.calls'`,
      );
      for (const [id, target] of [[onNode.second, gate.port] as const, [onNode.first, cluster.nodes[1].port] as const]) {
        const schema = `callkey_shard_${shardNumber(id, 8)}`;
        if (placements.some((row) => row.schema === schema && row.port !== target))
          await coordinator.query(name, `SELECT citus_schema_move('${schema}', '127.0.0.1', ${target}, 'block_writes')`);
      }
      core = await spawnCore(coordinator.url(name), { DIALER: 'off' });
      keys = await keyOf(core);
    });
    after(async () => {
      await core?.stop('SIGTERM');
      await gate?.close();
    });

    it('refuse only the calls of a lost node, keep all acknowledged ones, and accept calls again when it is back', async () => {
      const [, , second] = cluster.nodes;
      for (const id of [onNode.first, onNode.second]) expect(await placed(core, id, keys.key, 'before')).to.equal(202);
      await gate.close();
      await stop(second);
      const during = await Promise.all(
        [onNode.first, onNode.second].map((id) => placed(core, id, keys.key, 'during').catch(() => 'closed' as const)),
      );
      expect(during[0]).to.equal(202);
      expect(during[1]).to.be.oneOf([503, 'closed']);
      // Once all open connections are known to be lost, nothing is sent.
      await until(async () => (await placed(core, onNode.second, keys.key, 'during').catch(() => 0)) === 503);
      expect(outcomeOf(await ask('DELETE', `${core.url}/console/api-keys/${keys.id}`, { cookie: keys.partner }))).to.equal(503);
      await second.start();
      await gate.listen();
      await until(async () => (await placed(core, onNode.second, keys.key, 'during').catch(() => 0)) === 202);
      expect(await placed(core, onNode.second, keys.key, 'before')).to.equal(202);
      await using direct = await openDirect(cluster.nodes[0].url(name));
      const ids = await shardOf(direct.storage.database, onNode.second)
        .read('calls')
        .where({ campaign_id: onNode.second })
        .orderBy('placed_at')
        .pluck('request_id');
      expect(ids).to.deep.equal(['before', 'during']);
    });

    it("don't acknowledge a revocation that a node has prepared but not committed, and refuse the key once it has recovered", async () => {
      const { id, keyValue } = await createKey(core.url, keys.partner, 'Doubtful');
      expect(await placed(core, onNode.second, keyValue, 'doubt')).to.equal(202);
      gate.closeBefore('COMMIT PREPARED');
      const revoked = await ask('DELETE', `${core.url}/console/api-keys/${id}`, { cookie: keys.partner });
      expect([revoked.status, revoked.text.includes("hasn't confirmed it")], revoked.text).to.deep.equal([503, true]);
      gate.open();
      // The nodes settle what's in doubt by themselves.
      await until(async () => (await placed(core, onNode.second, keyValue, 'doubt').catch(() => 0)) === 401);
      expect(await placed(core, onNode.first, keyValue, 'doubt')).to.equal(401);
    });

    it('keep the others fast while one of them hangs', async () => {
      const [, , second] = cluster.nodes;
      const signal = (name: NodeJS.Signals) => second.signal(name);
      signal('SIGSTOP');
      try {
        const hanging = placed(core, onNode.second, keys.key, 'hanging').catch(() => 'closed' as const);
        await pause(200);
        const begun = performance.now();
        for (let n = 0; n < 20; n++) expect(await placed(core, onNode.first, keys.key, `beside-${n}`)).to.equal(202);
        expect(performance.now() - begun).to.be.lessThan(5_000);
        expect(await hanging).to.be.oneOf([503, 'closed']);
      } finally {
        signal('SIGCONT');
      }
      await until(async () => (await placed(core, onNode.second, keys.key, 'hanging').catch(() => 0)) === 202);
    });

    it('lose no call while a shard moves, and while a core is killed during the move', async () => {
      const [coordinator, first] = cluster.nodes;
      const other = await spawnCore(formatUrl([first, coordinator], name), { DIALER: 'off' });
      const schema = `callkey_shard_${shardNumber(onNode.second, 8)}`;
      const acknowledged: string[] = [];
      let isOver = false;
      const placers = [core, other].map(async (by, p) => {
        for (let n = 0; !isOver; n++) {
          const requestId = `move-${p}-${n}`;
          while ((await placed(by, onNode.second, keys.key, requestId).catch(() => 0)) !== 202) {
            if (isOver || by.child.signalCode !== null) return;
            await pause(50);
          }
          acknowledged.push(requestId);
        }
      });
      for (const [n, port] of [first.port, gate.port].entries()) {
        const moving = coordinator.query(name, `SELECT citus_schema_move('${schema}', '127.0.0.1', ${port}, 'force_logical')`);
        if (n === 1) {
          await pause(300);
          await other.stop('SIGKILL');
        }
        await moving;
      }
      isOver = true;
      await Promise.all(placers);
      await using direct = await openDirect(coordinator.url(name));
      const calls = await shardOf(direct.storage.database, onNode.second)
        .read('calls')
        .where('request_id', 'like', 'move-%')
        .pluck('request_id');
      expect(acknowledged.length).to.be.greaterThan(20);
      expect(acknowledged.filter((id) => !calls.includes(id))).to.deep.equal([]);
      expect(new Set(calls).size).to.equal(calls.length);
    });
  });
});

async function keyOf({ url }: CoreProcess) {
  const partner = await signIn(url, 'pat@example.com');
  const { id, keyValue } = await createKey(url, partner);
  return { partner, id, key: keyValue };
}

async function placed({ url }: CoreProcess, campaignId: string, key: string, requestId: string): Promise<number> {
  return (await placeCall(url, campaignId, key, { requestId, contact: { phone: '+493012345678' } })).status;
}

async function listed({ url }: CoreProcess, cookie: string): Promise<unknown> {
  const { status, json } = await ask('GET', `${url}/console/calls`, { cookie });
  expect(status).to.equal(200);
  return json;
}

async function stop({ server }: Cluster['nodes'][number]): Promise<void> {
  const ended = once(server, 'exit');
  server.kill('SIGQUIT');
  await ended;
}

/** Opens a port that leads to a node, and can be closed just before a statement arrives there. */
async function gateTo(port: number) {
  let statement: string | undefined;
  let isClosed = false;
  const sockets = new Set<Socket>();
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    if (isClosed) return void client.destroy();
    const node = connect(port, '127.0.0.1');
    for (const socket of [client, node]) {
      sockets.add(socket);
      socket
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(socket);
          client.destroy();
          node.destroy();
        });
    }
    client.on('data', (bytes: Buffer) => {
      if (statement !== undefined && bytes.includes(statement)) {
        isClosed = true;
        return end();
      }
      node.write(bytes);
    });
    node.on('data', (bytes: Buffer) => client.write(bytes));
  });
  const own = await freePort();
  const listen = () => once(server.listen(own, '127.0.0.1'), 'listening');
  await listen();
  return {
    port: own,
    listen,
    closeBefore(text: string): void {
      statement = text;
    },
    open(): void {
      statement = undefined;
      isClosed = false;
    },
    async close(): Promise<void> {
      end();
      server.close();
      await once(server, 'close');
    },
  };
}
