import { expect } from 'chai';
import { callLane, shardNumber } from '../../../core/storage/engine/call-lanes.ts';
import { adminOn } from '../../support/commands.ts';
import { type CoreProcess, spawnCore } from '../../support/core.ts';
import { type Answer, ask } from '../../support/http.ts';
import { changeNodePort, createCampaignIn, formatUrl, moveShard } from '../../support/postgres-node.ts';
import { type Front, startFront } from '../../support/proxies.ts';
import { createKey, createTenants, openDirect } from '../../support/tenants.ts';
import { until } from '../../support/until.ts';
import { createPartnerKey, place, type SharedCluster } from './shared.ts';

const listedNumber = '+493099999999';

export function testFailingNodes(its: SharedCluster): void {
  let core: CoreProcess;
  let keys: Awaited<ReturnType<typeof createPartnerKey>>;
  let gate: Front;
  let name: string;
  /** For each node that has shards, a campaign whose calls are on that node. */
  let onNode: { first: string; second: string };

  before(async () => {
    const [coordinator, , second] = its.cluster.nodes;
    gate = await startFront(second.url(''));
    name = await its.cluster.createDatabase();
    await changeNodePort(coordinator, name, second.port, gate.port);
    const { admin } = adminOn(coordinator.url(name));
    await admin(['migrate']);
    await using direct = await openDirect(coordinator.url(name));
    const tenants = await createTenants(direct.ports);
    const own = shardNumber(tenants.campaign.id, 4);
    const other = await createCampaignIn(direct.ports, tenants.siblingAccount.id, 4, (shard) => shard !== own);
    onNode = { second: tenants.campaign.id, first: other.id };
    await direct.close();
    const created = await admin(['shards', 'create', '4']);
    expect(created.stdout, created.stderr).to.equal('Created 4 shards.\n');
    const placements = await coordinator.query<{ schema: string; port: number }>(
      name,
      `SELECT split_part(table_name::text, '.', 1) AS schema, nodeport AS port FROM citus_shards WHERE table_name::text LIKE '%.calls'`,
    );
    for (const [id, target] of [[onNode.second, gate.port] as const, [onNode.first, its.cluster.nodes[1].port] as const]) {
      const schema = `callkey_shard_${shardNumber(id, 4)}`;
      if (placements.some((row) => row.schema === schema && row.port !== target))
        await coordinator.query(name, `SELECT citus_schema_move('${schema}', '127.0.0.1', ${target}, 'block_writes')`);
    }
    // The sessions, and the counts of limited keys, are on the node that isn't lost.
    await coordinator.query(
      name,
      `SELECT citus_move_shard_placement(shardid, '127.0.0.1', ${gate.port}, '127.0.0.1', ${its.cluster.nodes[1].port}, 'block_writes')
       FROM citus_shards WHERE table_name = 'sessions'::regclass AND nodeport = ${gate.port}`,
    );
    core = await spawnCore(coordinator.url(name));
    keys = await createPartnerKey(core);
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
  const isUnchanged = ({ text }: Answer) => /can't be reached|is busy/.test(text);
  const isInDoubt = ({ status, text }: Answer) => status === 503 && text.includes("hasn't confirmed");

  it('refuse only the calls of a lost node, keep all acknowledged ones, and accept calls again when it is back', async () => {
    const [, , second] = its.cluster.nodes;
    const limited = await createKey(core.url, keys.partner, 'Limited');
    expect(await change('PATCH', `api-keys/${limited.id}`, { callsPerDay: 9 })).to.equal(200);
    for (const id of [onNode.first, onNode.second]) expect(await place(core, id, keys.key, 'before')).to.equal(202);
    await gate.close();
    await second.stop();
    const during = await Promise.all(
      [onNode.first, onNode.second].map((id) => place(core, id, keys.key, 'during').catch(() => 'closed' as const)),
    );
    expect(during[0]).to.equal(202);
    expect(during[1]).to.be.oneOf([503, 'closed']);
    // Once the core knows that all of its connections to the lost node have ended, it returns a 503 without sending anything.
    await until(async () => (await place(core, onNode.second, keys.key, 'during').catch(() => 0)) === 503);
    expect(await place(core, onNode.first, limited.keyValue, 'limited')).to.equal(202);
    // While a node is lost, a change to a table that exists on every node isn't made on any node.
    expect(await change('DELETE', `api-keys/${keys.id}`)).to.equal(503);
    expect(await change('PATCH', `api-keys/${keys.id}`, { addresses: ['192.0.2.0/24'] })).to.equal(503);
    expect(await change('PATCH', `api-keys/${keys.id}`, { callsPerDay: 1 })).to.equal(503);
    expect(await change('POST', 'do-not-call', { phones: ['+493012345678'], reason: 'asked' })).to.equal(503);
    expect(await place(core, onNode.first, keys.key, 'unchanged')).to.equal(202);
    await second.start();
    await gate.mend();
    await until(async () => (await place(core, onNode.second, keys.key, 'during').catch(() => 0)) === 202);
    expect(await place(core, onNode.second, keys.key, 'before')).to.equal(202);
    const { json } = await ask('GET', `${core.url}/console/api-keys/${keys.id}`, { cookie: keys.partner });
    expect(json).to.have.nested.property('apiKey.limitsVersion', null);
    await using direct = await openDirect(its.cluster.nodes[0].url(name));
    const ids = await callLane(direct.storage.database, onNode.second)
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
    for (const { keyValue, id } of [revoked, limited]) expect(await place(core, onNode.second, keyValue, id)).to.equal(202);
    let listing: Answer;
    do {
      gate.release();
      await gate.mend();
      // On a busy machine, an attempt can time out after the node has prepared its transaction. Until this transaction ends, its lock
      // stops all further attempts.
      await until(async () => (await its.cluster.nodes[2].query(name, 'SELECT 1 FROM pg_prepared_xacts')).length === 0);
      void gate.hold('COMMIT PREPARED').then(gate.close);
      listing = await list();
      await gate.close();
    } while (isUnchanged(listing));
    expect(isInDoubt(listing), listing.text).to.equal(true);
    gate.release();
    await gate.mend();
    expect(await repeat(list)).to.equal(201);
    for (const id of [onNode.first, onNode.second]) expect(await place(core, id, keys.key, 'listed', listedNumber)).to.equal(403);

    const staysInDoubt = async (make: () => Promise<Answer>) => {
      let answer = await make();
      while (isUnchanged(answer)) answer = await make();
      expect(isInDoubt(answer), answer.text).to.equal(true);
    };
    const isLost = gate.hold('COMMIT PREPARED');
    try {
      const revoking = staysInDoubt(revoke);
      // A revocation that starts while another change is in doubt isn't made at all.
      await isLost;
      await Promise.all([revoking, staysInDoubt(limit)]);
      expect((await Promise.all([revoke(), limit()])).map(({ status }) => status)).to.deep.equal([503, 503]);
      // The node that hasn't committed yet still accepts the key from this address, and doesn't count its calls: a limit counts from when it's
      // set.
      expect(await place(core, onNode.second, limited.keyValue, 'uncounted')).to.equal(202);
    } finally {
      gate.release();
    }
    expect(await repeat(revoke)).to.equal(404);
    expect(await place(core, onNode.second, revoked.keyValue, 'revoked')).to.equal(401);
    expect(await repeat(limit)).to.equal(200);
    expect(await place(core, onNode.second, limited.keyValue, 'limited')).to.equal(401);
    const { json } = await ask('GET', `${core.url}/console/api-keys/${limited.id}`, { cookie: keys.partner });
    expect(json).to.have.nested.property('today.placed', 0);
  });

  it('respond quickly while another node hangs', async () => {
    const [, , second] = its.cluster.nodes;
    second.signal('SIGSTOP');
    try {
      const isSent = gate.carries('hanging');
      const hanging = place(core, onNode.second, keys.key, 'hanging').catch(() => 'closed' as const);
      await isSent;
      const begun = performance.now();
      for (let n = 0; n < 20; n++) expect(await place(core, onNode.first, keys.key, `beside-${n}`)).to.equal(202);
      expect(performance.now() - begun).to.be.lessThan(5_000);
      expect(await hanging).to.be.oneOf([503, 'closed']);
    } finally {
      second.signal('SIGCONT');
    }
    await until(async () => (await place(core, onNode.second, keys.key, 'hanging').catch(() => 0)) === 202);
  });

  it('lose no call while a shard moves, and while a core is killed during the move', async () => {
    const [coordinator, first] = its.cluster.nodes;
    const other = await spawnCore(formatUrl([first, coordinator], name));
    const schema = `callkey_shard_${shardNumber(onNode.second, 4)}`;
    const acknowledged: string[] = [];
    let isOver = false;
    const placers = [core, other].map(async (by, p) => {
      for (let n = 0; !isOver; n++) {
        const requestId = `move-${p}-${n}`;
        let isPlaced = false;
        await until(async () => {
          isPlaced = (await place(by, onNode.second, keys.key, requestId).catch(() => 0)) === 202;
          return isPlaced || isOver || by.child.signalCode !== null;
        });
        if (!isPlaced) return;
        acknowledged.push(requestId);
      }
    });
    for (const [n, port] of [first.port, gate.port].entries()) {
      const moving = moveShard(coordinator, name, schema, port);
      if (n === 1) {
        // While Citus moves a shard, its rows are published.
        await until(async () => (await first.query(name, 'SELECT 1 FROM pg_publication')).length > 0);
        await other.stop('SIGKILL');
      }
      await moving;
    }
    isOver = true;
    await Promise.all(placers);
    await using direct = await openDirect(coordinator.url(name));
    const calls = await callLane(direct.storage.database, onNode.second)
      .read('calls')
      .where('request_id', 'like', 'move-%')
      .pluck('request_id');
    expect(acknowledged.length).to.be.greaterThan(20);
    expect(acknowledged.filter((id) => !calls.includes(id))).to.deep.equal([]);
    expect(new Set(calls).size).to.equal(calls.length);
  });
}
