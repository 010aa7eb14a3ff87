import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { plus } from '../../core/domain/instant.ts';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openDatabase } from '../../core/storage/engine/open.ts';
import { createShards } from '../../core/storage/engine/postgres/cluster.ts';
import { shardNumber, shardOf, shardsOf } from '../../core/storage/engine/shards.ts';
import { migrate, toSchemaState } from '../../core/storage/migrations/index.ts';
import { adminOn } from '../support/admin.ts';
import { type Cluster, createCampaignIn, formatUrl, missingCitus, moveShard, readPage, startCluster } from '../support/citus.ts';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { freshDatabase } from '../support/databases.ts';
import { type Gate, startGate } from '../support/gate.ts';
import { type Answer, ask } from '../support/http.ts';
import { skip } from '../support/skip.ts';
import { createKey, createTenants, type DirectAccess, openDirect, placeCall, signIn, somePhone, type Tenants } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('shards', function () {
  this.timeout(180_000);
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
      expect((await admin(['backup', '/tmp/never-written'])).stderr).to.contain("wouldn't be consistent");
    });

    it("aren't created if Citus is missing or too old, or a node has wrong settings or can't be reached, and the error says so", async () => {
      const plain = await adminOn(await freshDatabase('postgres')).admin(['shards', 'create', '2']);
      expect([plain.code, plain.stderr]).to.deep.equal([
        4,
        "error: The database can't have shards:\n- this PostgreSQL doesn't have Citus: install the extension on each node, then run there: CREATE EXTENSION citus\n",
      ]);
      const name = await cluster.createDatabase();
      const [coordinator, node] = cluster.nodes;
      const { admin } = adminOn(coordinator.url(name));
      await admin(['migrate']);
      const early = await cluster.createEarlier('12.1-1');
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
    const name = await cluster.createDatabase();
    const [coordinator] = cluster.nodes;
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
    const creating = createShards(database, 2);
    await until(async () => (await coordinator.query(name, 'SELECT 1 FROM pg_locks WHERE NOT granted')).length > 0);
    await placing.commit();
    await creating;
    expect(await shardOf(database, campaign.id).read('calls').pluck('contact_id')).to.deep.equal(['c']);
  });

  it('store the existing calls of a database once the commands in scaling.md have run, and other releases then refuse the database', async () => {
    const name = await cluster.createDatabase();
    const [coordinator] = cluster.nodes;
    const url = coordinator.url(name);
    const { admin, json } = adminOn(url);
    // Creates 8 shards instead of 32, which would take longer.
    const commands = readPage('sh', '### Set it up').map((line) => line.replace('npm run admin -- ', '').replace('32', '8').split(' '));
    const [migrate, create, check] = commands;
    if (!migrate || !create || !check) throw new Error('A command is missing on the page.');
    await admin(migrate);
    const direct = await openDirect(url);
    const tenants = await createTenants(direct.ports);
    const core = await spawnCore(url, { DIALER: 'off' });
    const { key, partner } = await keyOf(core);
    const ids = [tenants.campaign.id, tenants.siblingCampaign.id];
    for (let n = 0; n < 10; n++) for (const id of ids) expect(await placed(core, id, key, `r${n}`)).to.equal(202);
    const before = await listed(core, partner);
    expect((await admin(create)).stderr).to.contain('is connected to the database');
    await core.stop('SIGTERM');
    await direct.close();
    const refused = await admin(create.slice(0, -1));
    expect([refused.code, refused.stderr.includes('This would move 20 calls')], refused.stderr).to.deep.equal([4, true]);
    expect(await json(...create)).to.deep.equal({ shards: 8, movedCalls: 20 });
    expect((await admin(check)).stdout).to.contain('ok     shards: 8 shards');

    const names = (await coordinator.query<{ name: string }>(name, 'SELECT name FROM schema_migrations')).map((row) => row.name);
    expect(() => toSchemaState(names)).to.throw('was migrated by a newer version of Callkey (migrations: shards-8)');
    const again = await spawnCore(formatUrl([...cluster.nodes].reverse(), name), { DIALER: 'off' });
    const partnerAgain = await signIn(again.url, 'pat@example.com');
    expect(await listed(again, partnerAgain)).to.deep.equal(before);
    // Each request repeats a call that was moved.
    for (const id of ids) expect(await placed(again, id, key, 'r3')).to.equal(202);
    expect(await listed(again, partnerAgain)).to.deep.equal(before);
    const moved = await openDirect(url);
    for (const [n, shard] of shardsOf(moved.storage.database).entries())
      for (const { campaign_id } of await shard.read('calls').select('campaign_id')) expect(shardNumber(campaign_id, 8)).to.equal(n);
    await moved.close();

    const node = await cluster.startAnother(name);
    const shard = `callkey_shard_${shardNumber(tenants.campaign.id, 8)}`;
    const [add, copy, move, where] = readPage('sql', '**Add a node**', [...cluster.nodes, node]);
    await coordinator.query(name, add ?? '');
    await coordinator.query(name, copy ?? '');
    await coordinator.query(name, move?.replace('callkey_shard_7', shard) ?? '');
    expect((await coordinator.query(name, where ?? '')).filter(({ nodeport }) => nodeport === node.port)).to.deep.equal([
      { shard, nodename: '127.0.0.1', nodeport: node.port },
    ]);
    expect((await admin(check)).stdout).to.contain('ok     shards: 8 shards');
    for (const id of ids) expect(await placed(again, id, key, 'r20')).to.equal(202);
    const onIt = await spawnCore(node.url(name), { DIALER: 'off' });
    for (const id of ids) expect(await placed(onIt, id, key, 'r20')).to.equal(202);
    for (const each of [again, onIt]) await each.stop('SIGTERM');
  });

  describe('in a database with two shards', () => {
    let url: string;
    let name: string;
    let direct: DirectAccess;
    let tenants: Tenants;
    before(async () => {
      url = await cluster.createWithShards(2);
      name = url.slice(url.lastIndexOf('/') + 1);
      direct = await openDirect(url);
      tenants = await createTenants(direct.ports);
    });
    after(() => direct.close());

    it('repeat a change that ended in a deadlock', async () => {
      const { write } = direct.storage.database;
      const bothLocked = Promise.withResolvers<void>();
      let locked = 0;
      const lock = (first: string, second: string) =>
        write.transaction(async (trx) => {
          await trx(first).forUpdate();
          if (++locked === 2) bothLocked.resolve();
          await bothLocked.promise;
          await trx(second).forUpdate();
        });
      await Promise.all([lock('clock', 'audit_chain'), lock('audit_chain', 'clock')]);
      expect(locked).to.equal(3);
    });

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
      const [coordinator, first] = cluster.nodes;
      const earlier = await spawnCore(url, { DIALER: 'off' });
      const { key } = await keyOf(earlier);
      const campaigns = [0, 1].map((shard) => createCampaignIn(direct.ports, tenants.account.id, 2, (own) => own === shard));
      const { database } = direct.storage;
      for (const { write } of shardsOf(database)) await write.raw('DROP INDEX calls_by_api_key');
      await database.write('schema_migrations').where({ name: '030-calls-by-key-additive' }).delete();
      const elsewhere = openDatabase(parseDatabaseUrl(first.url(name)) ?? { kind: 'sqlite', filename: '' }, 'make');
      const error = await migrate(elsewhere).catch((reason: Error) => reason.message);
      expect(error).to.contain("isn't the coordinator");
      await elsewhere.close();
      let isOver = false;
      const placing = campaigns.map(async (campaign) => {
        const { id } = await campaign;
        const statuses = new Set<number>();
        for (let n = 0; !isOver; n++) statuses.add(await placed(earlier, id, key, `during-${n}`));
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
  });

  describe('on nodes that fail', () => {
    let core: CoreProcess;
    let keys: Awaited<ReturnType<typeof keyOf>>;
    let gate: Gate;
    let name: string;
    /** For each node that has shards, a campaign whose calls are on that node. */
    let onNode: { first: string; second: string };

    before(async () => {
      const [coordinator, , second] = cluster.nodes;
      gate = await startGate(second.port);
      name = await cluster.createDatabase();
      await coordinator.query(
        name,
        `SELECT citus_update_node(nodeid, '127.0.0.1', ${gate.port}) FROM pg_dist_node WHERE nodeport = ${second.port}`,
      );
      const { admin } = adminOn(coordinator.url(name));
      await admin(['migrate']);
      await using direct = await openDirect(coordinator.url(name));
      const tenants = await createTenants(direct.ports);
      const own = shardNumber(tenants.campaign.id, 8);
      const other = await createCampaignIn(direct.ports, tenants.siblingAccount.id, 8, (shard) => shard !== own);
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
      // The sessions, and the counts of limited keys, are on the node that isn't lost.
      await coordinator.query(
        name,
        `SELECT citus_move_shard_placement(shardid, '127.0.0.1', ${gate.port}, '127.0.0.1', ${cluster.nodes[1].port}, 'block_writes')
         FROM citus_shards WHERE table_name = 'sessions'::regclass AND nodeport = ${gate.port}`,
      );
      core = await spawnCore(coordinator.url(name), { DIALER: 'off' });
      keys = await keyOf(core);
    });
    after(async () => {
      await core?.stop('SIGTERM');
      await gate?.close();
    });

    /** Sends a request that changes a table that exists on every node. */
    const send = (method: string, path: string, body?: object) =>
      ask(method, `${core.url}/console/${path}`, { cookie: keys.partner, ...(body && { body }) });
    const change = async (...args: Parameters<typeof send>) => (await send(...args)).status;
    /** Whether the response says that nothing was changed, for example because the core had already lost its connection to a node. */
    const isUnchanged = ({ text }: Answer) => text.includes("can't be reached");
    const isInDoubt = ({ status, text }: Answer) => status === 503 && text.includes("hasn't confirmed");

    it('refuse only the calls of a lost node, keep all acknowledged ones, and accept calls again when it is back', async () => {
      const [, , second] = cluster.nodes;
      const limited = await createKey(core.url, keys.partner, 'Limited');
      expect(await change('PATCH', `api-keys/${limited.id}`, { callsPerDay: 9 })).to.equal(200);
      for (const id of [onNode.first, onNode.second]) expect(await placed(core, id, keys.key, 'before')).to.equal(202);
      await gate.close();
      await second.stop();
      const during = await Promise.all(
        [onNode.first, onNode.second].map((id) => placed(core, id, keys.key, 'during').catch(() => 'closed' as const)),
      );
      expect(during[0]).to.equal(202);
      expect(during[1]).to.be.oneOf([503, 'closed']);
      // Once the core knows that all of its connections to the lost node have ended, it returns a 503 without sending anything.
      await until(async () => (await placed(core, onNode.second, keys.key, 'during').catch(() => 0)) === 503);
      expect(await placed(core, onNode.first, limited.keyValue, 'limited')).to.equal(202);
      // While a node is lost, a change to a table that exists on every node isn't made on any node.
      expect(await change('DELETE', `api-keys/${keys.id}`)).to.equal(503);
      expect(await change('PATCH', `api-keys/${keys.id}`, { addresses: ['192.0.2.0/24'] })).to.equal(503);
      expect(await change('PATCH', `api-keys/${keys.id}`, { callsPerDay: 1 })).to.equal(503);
      expect(await change('POST', 'do-not-call', { phones: ['+493012345678'], reason: 'asked' })).to.equal(503);
      expect(await placed(core, onNode.first, keys.key, 'unchanged')).to.equal(202);
      await second.start();
      await gate.listen();
      await until(async () => (await placed(core, onNode.second, keys.key, 'during').catch(() => 0)) === 202);
      expect(await placed(core, onNode.second, keys.key, 'before')).to.equal(202);
      const { json } = await ask('GET', `${core.url}/console/api-keys/${keys.id}`, { cookie: keys.partner });
      expect(json).to.have.nested.property('apiKey.limitsVersion', null);
      await using direct = await openDirect(cluster.nodes[0].url(name));
      const ids = await shardOf(direct.storage.database, onNode.second)
        .read('calls')
        .where({ campaign_id: onNode.second })
        .orderBy('placed_at')
        .pluck('request_id');
      expect(ids).to.deep.equal(['before', 'during']);
    });

    it("don't acknowledge a change, or a repeat of it, until the last node has committed it", async () => {
      const [revoked, limited] = [await createKey(core.url, keys.partner, 'Revoked'), await createKey(core.url, keys.partner, 'Limited')];
      const revoke = () => send('DELETE', `api-keys/${revoked.id}`);
      const limit = () => send('PATCH', `api-keys/${limited.id}`, { addresses: ['192.0.2.0/24'], callsPerDay: 5 });
      const list = () => send('POST', 'do-not-call', { phones: [listedNumber], reason: 'asked' });
      const repeat = async (make: () => Promise<Answer>) => {
        let status = 503;
        while (status === 503) ({ status } = await make());
        return status;
      };
      for (const { keyValue, id } of [revoked, limited]) expect(await placed(core, onNode.second, keyValue, id)).to.equal(202);
      let listing: Answer;
      do {
        gate.open();
        await gate.listen();
        // On a busy machine, an attempt can time out after the node has prepared its transaction. Until this transaction ends, its lock
        // stops all further attempts.
        await until(async () => (await cluster.nodes[2].query(name, 'SELECT 1 FROM pg_prepared_xacts')).length === 0);
        void gate.hold('COMMIT PREPARED').then(gate.close);
        listing = await list();
        await gate.close();
      } while (isUnchanged(listing));
      expect(isInDoubt(listing), listing.text).to.equal(true);
      gate.open();
      await gate.listen();
      expect(await repeat(list)).to.equal(201);
      for (const id of [onNode.first, onNode.second]) expect(await placed(core, id, keys.key, 'listed', listedNumber)).to.equal(403);

      void gate.hold('COMMIT PREPARED');
      try {
        await Promise.all(
          [revoke, limit].map(async (make) => {
            let answer = await make();
            while (isUnchanged(answer)) answer = await make();
            expect(isInDoubt(answer), answer.text).to.equal(true);
          }),
        );
        expect((await Promise.all([revoke(), limit()])).map(({ status }) => status)).to.deep.equal([503, 503]);
        // The node that hasn't committed yet still accepts the key from this address, and doesn't count its calls.
        expect(await placed(core, onNode.second, limited.keyValue, 'uncounted')).to.equal(202);
      } finally {
        gate.open();
      }
      expect(await repeat(revoke)).to.equal(404);
      expect(await placed(core, onNode.second, revoked.keyValue, 'revoked')).to.equal(401);
      expect(await repeat(limit)).to.equal(200);
      expect(await placed(core, onNode.second, limited.keyValue, 'limited')).to.equal(401);
      const { json } = await ask('GET', `${core.url}/console/api-keys/${limited.id}`, { cookie: keys.partner });
      expect(json).to.have.nested.property('today.placed', 2);
    });

    it('respond quickly while another node hangs', async () => {
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
        const moving = moveShard(coordinator, name, schema, port);
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

const listedNumber = '+493099999999';

async function placed({ url }: CoreProcess, campaignId: string, key: string, requestId: string, phone = '+493012345678'): Promise<number> {
  return (await placeCall(url, campaignId, key, { requestId, contact: { phone } })).status;
}

async function listed({ url }: CoreProcess, cookie: string): Promise<unknown> {
  const { status, json } = await ask('GET', `${url}/console/calls`, { cookie });
  expect(status).to.equal(200);
  return json;
}
