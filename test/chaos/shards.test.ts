import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { shardNumber, shardSchema } from '../../core/storage/engine/call-lanes.ts';
import { own } from '../../scripts/support/postgres.ts';
import { freshDirectory, postgresTools } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import {
  changeNodePort,
  createCampaignIn,
  formatUrl,
  missingCitus,
  moveShard,
  type PostgresNode,
  readPage,
  startCluster,
} from '../support/postgres-node.ts';
import { startFront } from '../support/proxies.ts';
import { skip } from '../support/suites.ts';
import { createKey, openDirect } from '../support/tenants.ts';
import { type Attack, callBody, describeAttacks, listCalls, openScene, type Scene, startCrowd, startLoad, type Trial } from './attack.ts';

const shards = 8;
const rounds = [...Array(6).keys()];

/**
 * Opens a database on a coordinator and two nodes with shards, two cores that are connected to different nodes, and a campaign on each node
 * with shards.
 */
async function openShards(trial: Trial, settings: readonly string[] = []) {
  const missing = missingCitus();
  if (missing) skip(trial.context, missing);
  const cluster = await startCluster(settings);
  trial.cleanup.defer(() => cluster.stop());
  const database = await cluster.createWithShards(shards);
  const name = database.slice(database.lastIndexOf('/') + 1);
  const [coordinator, first, second] = cluster.nodes;
  const scene = await openScene(trial, { database });
  const startElsewhere = () => scene.start({ DATABASE_URL: formatUrl([coordinator, second, first], name) });
  const cores = [scene.core(), await startElsewhere()];
  const schemaOf = (campaignId: string) => shardSchema(shardNumber(campaignId, shards));
  const ownPort = `SELECT nodeport FROM citus_shards WHERE table_name::text = '${schemaOf(scene.campaignId)}.calls'`;
  const elsewhere = await coordinator.query<{ name: string }>(
    name,
    `SELECT table_name::text AS name FROM citus_shards WHERE nodeport <> (${ownPort})`,
  );
  const isElsewhere = (shard: number) => elsewhere.some((table) => table.name === `${shardSchema(shard)}.calls`);
  await using direct = await openDirect(database);
  const other = await createCampaignIn(direct.ports, scene.tenants.account.id, shards, isElsewhere);
  const campaigns = [scene.campaignId, other.id] as const;
  const url = (n: number) => cores[n % cores.length]?.url ?? '';
  const loads = campaigns.map((campaignId) => startLoad(scene, { campaignId, url, placers: 6 }));
  const revoking = startRevoking(scene, url, campaigns);
  const more = (count: number) => Promise.all(loads.map((load) => load.more(count, 30_000)));
  const stopLoad = async () => {
    await Promise.all(loads.map((load) => load.stop()));
    scene.ledger.note(`${await revoking.stop()} keys were revoked`);
  };
  return {
    ...{ ...scene, cluster, coordinator, first, second, name, cores, campaigns, schemaOf, startElsewhere, more, stopLoad },
    /** Attacks the nodes once for each item, after this many more calls. Afterwards, each campaign must get calls, from each core. */
    async attack<Item>(items: readonly Item[], calls: number, when: string, attack: (item: Item) => Promise<void>): Promise<void> {
      for (const item of items) {
        await more(calls);
        await attack(item);
        for (const campaignId of campaigns) {
          const body = callBody(`works-${campaignId}-${performance.now()}`);
          for (const { url } of cores) {
            const works = async () => (await scene.place(body, { url, campaignId })).status === 202;
            await scene.ledger.expect(works, 30_000, `no call can be placed ${when}`);
          }
        }
      }
      await stopLoad();
      await scene.stopAndCompare();
    },
  };
}

/**
 * Creates and uses keys, and revokes each one, retrying until a core acknowledges it. Then tries the key again on different cores, for
 * campaigns on all nodes.
 */
function startRevoking(scene: Scene, url: (n: number) => string, campaigns: readonly string[]) {
  const crowd = startCrowd(scene.trial, 2, async (n) => {
    const created = await createKey(url(n), scene.cookie).catch(() => null);
    if (!created) return void (await pause(200));
    const { id, keyValue: key } = created;
    const use = (when: string) =>
      Promise.all(campaigns.map((campaignId, c) => scene.place(`${when}-${n}-${c}`, { key, campaignId, url: url(n + c) })));
    await use('before');
    const isRevoked = async () => {
      const answer = await ask('DELETE', `${url(n)}/console/api-keys/${id}`, { cookie: scene.cookie }).catch(() => null);
      if (answer && ![204, 404, 503].includes(answer.status)) scene.ledger.fail(`revoking a key got ${answer.status}`);
      return answer?.status === 204 || answer?.status === 404;
    };
    while (!(await isRevoked())) {
      if (crowd.isOver()) return;
      await pause(50);
    }
    scene.ledger.revoked.add(key);
    await use('after');
    await use('after');
  });
  return crowd;
}

const stopped: Attack['run'] = async (trial) => {
  const scene = await openShards(trial);
  await scene.attack(scene.cluster.nodes, 300, 'after a node was stopped', async (node) => {
    await node.stop();
    await pause(3_000);
    await node.start();
  });
};

const frozen: Attack['run'] = async (trial) => {
  const scene = await openShards(trial);
  await scene.attack(scene.cluster.nodes, 300, 'after a node was frozen', async (node) => {
    node.signal('SIGSTOP');
    await pause(8_000);
    node.signal('SIGCONT');
  });
};

/** A node isn't told to commit what it has prepared. In every second round, the node that should tell it crashes as well. */
const inDoubt: Attack['run'] = async (trial) => {
  const scene = await openShards(trial);
  const { coordinator, second } = scene;
  const gate = await startFront(second.url(''));
  trial.cleanup.defer(() => gate.close());
  await changeNodePort(coordinator, scene.name, second.port, gate.port);
  let lost = 0;
  await scene.attack(rounds, 50, 'after a commit was in doubt', async (round) => {
    const isHeld = await Promise.race([gate.hold('COMMIT PREPARED').then(() => true), pause(10_000, false)]);
    if (isHeld) lost++;
    if (round % 2 === 1) {
      await coordinator.stop();
      gate.release();
      await pause(2_000);
      await coordinator.start();
    } else await pause(4_000);
    gate.release();
  });
  scene.ledger.note(`${lost} times, a node wasn't told to commit`);
  if (lost === 0) scene.ledger.fail('no commit was in doubt');
};

const moved: Attack['run'] = async (trial) => {
  const scene = await openShards(trial);
  const { coordinator, first, second, name, cores, campaigns, schemaOf } = scene;
  await scene.attack(rounds, 100, 'after a shard was moved', async (round) => {
    const schema = schemaOf(campaigns[round % 2 ? 0 : 1]);
    const where = `SELECT nodeport AS port FROM citus_shards WHERE table_name::text = '${schema}.calls'`;
    const [shard] = await coordinator.query<{ port: number }>(name, where);
    const { port } = shard?.port === first.port ? second : first;
    const moving = moveShard(coordinator, name, schema, port);
    if (round % 2 === 1) {
      await pause(300);
      await cores[1]?.stop('SIGKILL');
      cores[1] = await scene.startElsewhere();
    }
    await moving;
  });
};

/** All nodes are restored to a common point, with the commands in core/docs/scaling.md. */
const restored: Attack['run'] = async (trial) => {
  const [line = ''] = readPage('ini', '### Back up').filter((each) => each.startsWith('archive_command'));
  const scene = await openShards(trial, ['archive_mode=on', line.replaceAll('/archive/', '../archive/')]);
  const { cluster, coordinator, name, ledger } = scene;
  const [backup = ''] = readPage('sh', '### Back up');
  const [point = ''] = readPage('sql', '### Back up');
  const backups: { node: PostgresNode; archive: string; files: string }[] = [];
  for (const node of cluster.nodes) {
    const [archive, files] = [join(dirname(node.data), 'archive/'), join(freshDirectory(), 'data')];
    mkdirSync(archive);
    own(archive);
    await scene.more(50);
    const [, ...options] = backup.replace('node2', '127.0.0.1').replace('/backup/node2', files).split(' ');
    execFileSync(join(postgresTools() ?? '', 'pg_basebackup'), [...options, '--port', String(node.port), '--username', 'postgres']);
    backups.push({ node, archive, files });
  }
  await scene.more(300);
  const before = { placed: new Map(ledger.placed), cancelled: new Map(ledger.cancelled) };
  await coordinator.query(name, point);
  await scene.more(300);
  await scene.stopLoad();
  for (const { node } of backups) {
    const [{ file } = { file: '' }] = await node.query<{ file: string }>(name, 'SELECT pg_walfile_name(pg_current_wal_lsn()) AS file');
    await node.query(name, 'SELECT pg_switch_wal()');
    const isArchived = `SELECT 1 FROM pg_stat_archiver WHERE last_archived_wal >= '${file}'`;
    await ledger.expect(async () => (await node.query(name, isArchived)).length > 0, 30_000, 'the log was not archived');
  }
  const all = await scene.stopAndCompare();
  const settings = readPage('ini', 'On each node, restore');
  for (const { node, archive, files } of backups) {
    await node.stop();
    appendFileSync(join(files, 'postgresql.auto.conf'), settings.map((each) => `${each.replaceAll('/archive/', archive)}\n`).join(''));
    writeFileSync(join(files, 'recovery.signal'), '');
    own(dirname(files));
    await node.start(files);
  }
  const onAll = async <Row extends object>(sql: string) =>
    (await Promise.all(cluster.nodes.map((node) => node.query<Row>(name, sql)))).flat();
  const isWritable = async () => (await onAll('SELECT 1 WHERE NOT pg_is_in_recovery()').catch(() => [])).length === backups.length;
  await ledger.expect(isWritable, 60_000, 'a node was not restored');
  const digest = `SELECT md5(concat((SELECT string_agg(id, ' ' ORDER BY id) FROM api_keys), (SELECT string_agg(id, ' ' ORDER BY id) FROM revoked_api_keys))) AS keys`;
  const areEqual = async () => new Set((await onAll<{ keys: string }>(digest)).map(({ keys }) => keys)).size === 1;
  await ledger.expect(areEqual, 20_000, 'the nodes have different keys');
  const calls = await listCalls(scene.database);
  ledger.compare(calls, before);
  ledger.note(`${before.placed.size} calls were acknowledged before the point, ${calls.length} of ${all.length} are restored`);
  if (calls.length >= all.length) ledger.fail('calls after the common point were restored, too');
  await scene.start({ DIALER: 'off' });
  await scene.mustPlace('after-restoring');
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
