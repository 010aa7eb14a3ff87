import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { shardNumber } from '../../core/storage/engine/call-lanes.ts';
import { own } from '../../scripts/support/postgres.ts';
import { freshDirectory, postgresTools } from '../support/databases.ts';
import { createCampaignIn, missingCitus, type PostgresNode, readPage, startCluster } from '../support/postgres-node.ts';
import { skip } from '../support/suites.ts';
import { createKey, openDirect } from '../support/tenants.ts';
import { describeAttacks, listCalls, openScene, type Scene, startCrowd, startLoad, type Trial } from './attack.ts';

const shards = 8;

/** Creates a campaign whose calls aren't on the node of the scene's campaign: Citus puts every second shard on each node. */
async function createCampaignElsewhere({ database, tenants, campaignId }: Scene): Promise<string> {
  await using direct = await openDirect(database);
  const own = shardNumber(campaignId, shards);
  return (await createCampaignIn(direct.ports, tenants.account.id, shards, (shard) => (shard - own) % 2 !== 0)).id;
}

/** Creates and revokes keys, as many as one user may within an hour. */
function startRevoking(scene: Scene) {
  const revokeOne = async () => {
    const { id, keyValue } = await createKey(scene.core().url, scene.cookie);
    await scene.revoke(id, keyValue);
  };
  return startCrowd(scene.trial, 1, revokeOne, 30);
}

/** All nodes are restored to a common point, with the commands in core/docs/scaling.md. */
async function restored(trial: Trial): Promise<void> {
  const [line = ''] = readPage('ini', '### Back up').filter((each) => each.startsWith('archive_command'));
  const missing = missingCitus();
  if (missing) skip(trial.context, missing);
  const cluster = await startCluster(['fsync=off', 'archive_mode=on', line.replaceAll('/archive/', '../archive/')]);
  trial.cleanup.defer(() => cluster.stop());
  const database = await cluster.createWithShards(shards);
  const name = database.slice(database.lastIndexOf('/') + 1);
  const scene = await openScene(trial, { database });
  const { ledger } = scene;
  const loads = [scene.campaignId, await createCampaignElsewhere(scene)].map((campaignId) => startLoad(scene, { campaignId, placers: 6 }));
  const more = (count: number) => Promise.all(loads.map((load) => load.more(count, 30_000)));
  const revoking = startRevoking(scene);
  const [backup = ''] = readPage('sh', '### Back up');
  const [point = ''] = readPage('sql', '### Back up');
  const backups: { node: PostgresNode; archive: string; files: string }[] = [];
  for (const node of cluster.nodes) {
    const [archive, files] = [join(dirname(node.data), 'archive/'), join(freshDirectory(), 'data')];
    mkdirSync(archive);
    own(archive);
    await more(50);
    const [, ...options] = backup.replace('node2', '127.0.0.1').replace('/backup/node2', files).split(' ');
    execFileSync(join(postgresTools() ?? '', 'pg_basebackup'), [...options, '--port', String(node.port), '--username', 'postgres']);
    backups.push({ node, archive, files });
  }
  await more(300);
  const before = { placed: new Map(ledger.placed), cancelled: new Map(ledger.cancelled) };
  await cluster.nodes[0].query(name, point);
  await more(300);
  await Promise.all(loads.map((load) => load.stop()));
  ledger.note(`${await revoking.stop()} keys were revoked`);
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
}

// What happens when nodes fail or shards move is tested in test/process/shards/failing-nodes.ts, and by the walk.
describeAttacks({
  name: 'shards-restored',
  title: 'all nodes of a database with shards restored to a common point',
  databases: ['postgres'],
  quickOn: null,
  run: restored,
});
