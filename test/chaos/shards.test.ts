import { execFileSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { shardNumber, shardSchema } from '../../core/storage/engine/shards.ts';
import { own, postgresTools } from '../../scripts/support/postgres.ts';
import { createCampaignIn, formatUrl, missingCitus, readPage, startCluster } from '../support/citus.ts';
import { freshDirectory } from '../support/databases.ts';
import { startGate } from '../support/gate.ts';
import { ask } from '../support/http.ts';
import { createKey, openDirect } from '../support/tenants.ts';
import { type Attack, describeAttacks, endLater, Skipped, type Trial } from './attack.ts';
import { startCrowd, startLoad } from './load.ts';
import { callBody, eventually, listCalls, openScene } from './scene.ts';

const shards = 8;

/** Opens a database with shards on three nodes, two cores that are connected to different nodes, and a campaign on each node with shards. */
async function openShards(trial: Trial, settings: readonly string[] = []) {
  const missing = missingCitus();
  if (missing) throw new Skipped(missing);
  const cluster = await startCluster(['fsync=off', ...settings]);
  endLater(trial, () => {
    for (const node of cluster.nodes) node.signal('SIGKILL');
  });
  const database = await cluster.createWithShards(shards);
  const name = database.slice(database.lastIndexOf('/') + 1);
  const [coordinator, first, second] = cluster.nodes;
  const scene = await openScene(trial, { database });
  const startElsewhere = () => scene.start({ DATABASE_URL: formatUrl([coordinator, second, first], name) });
  const cores = [scene.core(), await startElsewhere()];
  const schemaOf = (campaignId: string) => shardSchema(shardNumber(campaignId, shards));
  const placements = await coordinator.query<{ schema: string; port: number }>(
    name,
    `SELECT split_part(table_name::text, '.', 1) AS schema, nodeport AS port FROM citus_shards WHERE table_name::text LIKE '%.calls'`,
  );
  const portOf = (schema: string) => placements.find((row) => row.schema === schema)?.port;
  await using direct = await openDirect(database);
  const ownPort = portOf(schemaOf(scene.campaignId));
  const isElsewhere = (shard: number) => portOf(shardSchema(shard)) !== ownPort;
  const other = await createCampaignIn(direct.ports, scene.tenants.account.id, shards, isElsewhere);
  const campaigns = [scene.campaignId, other.id] as const;
  const url = (n: number) => cores[n % cores.length]?.url ?? '';
  const loads = campaigns.map((campaignId) => startLoad(scene, { campaignId, url, placers: 6 }));
  const revoking = startRevoking(scene, url, campaigns);
  return {
    ...{ ...scene, cluster, coordinator, first, second, name, cores, campaigns, schemaOf, startElsewhere },
    more: (count: number) => Promise.all(loads.map((load) => load.more(count, 30_000))),
    /** Counts a fault if one of the campaigns gets no calls. */
    async expectAll(when: string): Promise<void> {
      for (const campaignId of campaigns) {
        const body = callBody(`works-${campaignId}-${performance.now()}`);
        for (const { url } of cores)
          if (!(await eventually(async () => (await scene.place(body, { url, campaignId })).status === 202, 30_000)))
            scene.ledger.fail(`no call can be placed ${when}`);
      }
    },
    async stopLoad(): Promise<void> {
      await Promise.all(loads.map((load) => load.stop()));
      scene.ledger.note(`${await revoking.stop()} keys were revoked`);
    },
  };
}

/**
 * Creates and uses keys, and revokes each one, retrying until a core acknowledges it. Then tries the key again on different cores, for
 * campaigns on all nodes.
 */
function startRevoking(scene: Awaited<ReturnType<typeof openScene>>, url: (n: number) => string, campaigns: readonly string[]) {
  const crowd = startCrowd(scene.trial, 2, async (n) => {
    const created = await createKey(url(n), scene.cookie).catch(() => null);
    if (!created) return void (await pause(200));
    const { id, keyValue: key } = created;
    const use = (when: string) =>
      Promise.all(campaigns.map((campaignId, c) => scene.place(`${when}-${n}-${c}`, { key, campaignId, url: url(n + c) })));
    await use('before');
    for (;;) {
      const status = await ask('DELETE', `${url(n)}/console/api-keys/${id}`, { cookie: scene.cookie }).then(
        (answer) => answer.status,
        () => 0,
      );
      if (status === 204 || status === 404) break;
      if (crowd.isOver()) return;
      if (status !== 503 && status !== 0) scene.ledger.fail(`revoking a key got ${status}`);
      await pause(50);
    }
    scene.ledger.revoke(key);
    await use('after');
    await use('after');
  });
  return crowd;
}

const stopped: Attack['run'] = async (trial) => {
  const scene = await openShards(trial);
  for (const node of scene.cluster.nodes) {
    await scene.more(300);
    await node.stop();
    await pause(3_000);
    await node.start();
    await scene.expectAll('after a node was stopped');
  }
  await scene.stopLoad();
  await scene.stopAndCompare();
};

const frozen: Attack['run'] = async (trial) => {
  const scene = await openShards(trial);
  for (const node of scene.cluster.nodes) {
    await scene.more(300);
    node.signal('SIGSTOP');
    await pause(8_000);
    node.signal('SIGCONT');
    await scene.expectAll('after a node was frozen');
  }
  await scene.stopLoad();
  await scene.stopAndCompare();
};

/** A node isn't told to commit what it has prepared. In every second round, the node that should tell it crashes as well. */
const inDoubt: Attack['run'] = async (trial) => {
  const scene = await openShards(trial);
  const { coordinator, second } = scene;
  const gate = await startGate(second.port);
  trial.cleanup.defer(() => gate.close());
  const update = `SELECT citus_update_node(nodeid, '127.0.0.1', ${gate.port}) FROM pg_dist_node WHERE nodeport = ${second.port}`;
  await coordinator.query(scene.name, update);
  let lost = 0;
  for (let round = 0; round < 6; round++) {
    await scene.more(50);
    const isHeld = await Promise.race([gate.hold('COMMIT PREPARED').then(() => true), pause(10_000, false)]);
    if (isHeld) lost++;
    if (round % 2 === 1) {
      await coordinator.stop();
      gate.open();
      await pause(2_000);
      await coordinator.start();
    } else await pause(4_000);
    gate.open();
    await scene.expectAll('after a commit was in doubt');
  }
  scene.ledger.note(`${lost} times, a node wasn't told to commit`);
  if (lost === 0) scene.ledger.fail('no commit was in doubt');
  await scene.stopLoad();
  await scene.stopAndCompare();
};

const moved: Attack['run'] = async (trial) => {
  const scene = await openShards(trial);
  const { coordinator, first, second, name, cores, campaigns, schemaOf } = scene;
  for (let round = 0; round < 6; round++) {
    await scene.more(100);
    const schema = schemaOf(campaigns[round % 2 ? 0 : 1]);
    const [{ port } = { port: 0 }] = await coordinator.query<{ port: number }>(
      name,
      `SELECT nodeport AS port FROM citus_shards WHERE table_name::text = '${schema}.calls'`,
    );
    const moving = coordinator.query(
      name,
      `SELECT citus_schema_move('${schema}', '127.0.0.1', ${port === first.port ? second.port : first.port})`,
    );
    if (round % 2 === 1) {
      await pause(300);
      await cores[1]?.stop('SIGKILL');
      cores[1] = await scene.startElsewhere();
    }
    await moving;
    await scene.expectAll('after a shard was moved');
  }
  await scene.stopLoad();
  await scene.stopAndCompare('SIGKILL');
};

/** All nodes are restored to a common point, with the commands of the page. */
const restored: Attack['run'] = async (trial) => {
  const [line = ''] = readPage('ini', '### Back up').filter((each) => each.startsWith('archive_command'));
  const scene = await openShards(trial, ['archive_mode=on', line.replaceAll('/archive/', '../archive/')]);
  const { cluster, coordinator, name, ledger } = scene;
  const [backup = ''] = readPage('sh', '### Back up');
  const [point = ''] = readPage('sql', '### Back up');
  const files: string[] = [];
  for (const { port, data } of cluster.nodes) {
    execFileSync('mkdir', ['-p', join(dirname(data), 'archive')]);
    own(join(dirname(data), 'archive'));
    await scene.more(50);
    const directory = join(freshDirectory(), 'data');
    const [, ...options] = backup.replace('node2', '127.0.0.1').replace('/backup/node2', directory).split(' ');
    execFileSync(join(postgresTools() ?? '', 'pg_basebackup'), [...options, '--port', String(port), '--username', 'postgres']);
    files.push(directory);
  }
  await scene.more(300);
  const placed = new Map(ledger.placed);
  const cancelled = new Map(ledger.cancelled);
  await coordinator.query(name, point);
  await scene.more(300);
  await scene.stopLoad();
  for (const node of cluster.nodes) {
    const [{ file } = { file: '' }] = await node.query<{ file: string }>(name, 'SELECT pg_walfile_name(pg_current_wal_lsn()) AS file');
    await node.query(name, 'SELECT pg_switch_wal()');
    const isArchived = `SELECT 1 FROM pg_stat_archiver WHERE last_archived_wal >= '${file}'`;
    if (!(await eventually(async () => (await node.query(name, isArchived)).length > 0, 30_000))) ledger.fail('the log was not archived');
  }
  const all = await scene.stopAndCompare();
  const settings = readPage('ini', 'On each node, restore');
  for (const [n, node] of cluster.nodes.entries()) {
    await node.stop();
    const [directory = '', archive] = [files[n], join(dirname(node.data), 'archive/')];
    appendFileSync(join(directory, 'postgresql.auto.conf'), settings.map((each) => `${each.replaceAll('/archive/', archive)}\n`).join(''));
    writeFileSync(join(directory, 'recovery.signal'), '');
    own(dirname(directory));
    await node.start(directory);
  }
  const isWritable = async () => {
    const answers = await Promise.all(
      cluster.nodes.map((node) => node.query<{ standby: boolean }>(name, 'SELECT pg_is_in_recovery() AS standby').catch(() => [])),
    );
    return answers.every(([answer]) => answer?.standby === false);
  };
  if (!(await eventually(isWritable, 60_000))) ledger.fail('a node was not restored');
  const digest = `SELECT md5(concat((SELECT string_agg(id, ' ' ORDER BY id) FROM api_keys), (SELECT string_agg(id, ' ' ORDER BY id) FROM retired_api_keys))) AS keys`;
  const areEqual = async () =>
    new Set((await Promise.all(cluster.nodes.map((node) => node.query<{ keys: string }>(name, digest)))).flat().map(({ keys }) => keys))
      .size === 1;
  if (!(await eventually(areEqual, 20_000))) ledger.fail('the nodes have different keys');
  const calls = await listCalls(scene.database);
  const found = new Map(calls.map(({ contactId, state }) => [contactId, state]));
  for (const contactId of placed.values()) if (!found.has(contactId)) ledger.fail(`${contactId} is missing on the restored nodes`);
  for (const contactId of cancelled.keys()) if (found.get(contactId) !== 'cancelled') ledger.fail(`${contactId} isn't cancelled`);
  ledger.note(`${placed.size} calls were acknowledged before the point, ${calls.length} of ${all.length} are restored`);
  if (calls.length >= all.length) ledger.fail('calls after the common point were restored, too');
  const core = await scene.start({ DIALER: 'off' });
  if ((await scene.place('after-restoring', { url: core.url })).status !== 202) ledger.fail('no call can be placed on the restored nodes');
  await scene.stop('SIGTERM');
};

const rows: readonly Pick<Attack, 'name' | 'title' | 'run'>[] = [
  { name: 'shards-stopped', title: 'the nodes of a database with shards stopped one at a time', run: stopped },
  { name: 'shards-frozen', title: 'the nodes of a database with shards frozen one at a time', run: frozen },
  { name: 'shards-in-doubt', title: 'commits left in doubt between nodes', run: inDoubt },
  { name: 'shards-moved', title: 'shards moved to other nodes, and cores killed during that', run: moved },
  { name: 'shards-restored', title: 'all nodes of a database with shards restored to a common point', run: restored },
];
// `npm test` has short versions in test/process/shards.test.ts.
describeAttacks(...rows.map((row): Attack => ({ ...row, databases: ['postgres'], quickOn: null })));
