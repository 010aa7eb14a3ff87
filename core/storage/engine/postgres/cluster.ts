import { Problem } from '../../../domain/problem.ts';
import { shardNumberSql, shardSchema, shardsName, shardTables } from '../call-lanes.ts';
import type { Lane } from '../database.ts';
import { migrationsTable, ownTables } from '../tables.ts';

/** The first release of Citus that Callkey was tested with. */
const oldestCitus = 13;

/** Every node has a copy of these tables, because the statements about calls read them. */
const copiedTables = [
  ...['partners', 'accounts', 'campaigns', 'users', 'api_keys', 'revoked_api_keys'],
  ...['do_not_call', 'do_not_call_additions', 'protection_rules', 'dialing_stops', 'dialing_paces', migrationsTable],
];
/** All other tables are together on one node. */
const singleTables = ownTables.filter((name) => ![...copiedTables, ...shardTables].includes(name));

/** The core's settings, for the connections between nodes. See postgres-connection.ts. */
const roleSettings = { enable_seqscan: 'off', enable_hashjoin: 'off', enable_mergejoin: 'off', jit: 'off', synchronous_commit: 'on' };

/** The settings that shards need on each node, with the values to set. */
const nodeSettings: Readonly<Record<string, { isRight: (value: string, all: NodeSettings) => boolean; remedy: string }>> = {
  max_prepared_transactions: {
    isRight: (value, all) => Number(value) >= Number(all['max_connections']),
    remedy: 'at least max_connections',
  },
  max_worker_processes: {
    isRight: (value) => Number(value) >= 16,
    remedy: '16 or more, because moving a shard hangs without free workers',
  },
  wal_level: { isRight: (value) => value === 'logical', remedy: 'logical, to move shards while they are used' },
  'citus.recover_2pc_interval': {
    isRight: (value) => Number(value) > 0 && Number(value) <= 5_000,
    remedy: '2s, because a node that was lost may use an outdated state for this long',
  },
};

type NodeSettings = Readonly<Record<string, string>>;
type Node = { id: number; name: string; group: number; has_shards: boolean };

/** Returns what keeps a database from having shards, and what to do about it. */
export async function findClusterFaults(database: Lane): Promise<string[]> {
  const [citus] = await database.query<{ available: string; installed: string | null }>(
    `SELECT default_version AS available, installed_version AS installed FROM pg_available_extensions WHERE name = 'citus'`,
  );
  if (!citus) return ["this PostgreSQL doesn't have Citus: install the extension on each node, then run there: CREATE EXTENSION citus"];
  if (citus.installed === null) return ['Citus is installed, but not in this database: run on each node: CREATE EXTENSION citus'];
  if (Number.parseInt(citus.installed, 10) < oldestCitus)
    return [
      `Citus ${citus.installed} is too old: install version ${oldestCitus} or later, then run on each node: ALTER EXTENSION citus UPDATE`,
    ];
  const nodes = await database.query<Node>(
    `SELECT nodeid AS id, concat(nodename, ':', nodeport) AS name, groupid AS "group", shouldhaveshards AS has_shards FROM pg_dist_node ORDER BY nodeid`,
  );
  if (!nodes.some(({ group }) => group === 0))
    return [`no node knows the coordinator: run there: SELECT citus_set_coordinator_host('HOST', PORT)`];
  const faults = nodes.some((node) => node.has_shards) ? [] : [`no node may have shards: run SELECT citus_add_node('HOST', PORT)`];
  return [...faults, ...(await findNodeFaults(database, nodes))];
}

async function findNodeFaults(database: Lane, nodes: readonly Node[]): Promise<string[]> {
  const names = ['max_connections', ...Object.keys(nodeSettings)].map((name) => `'${name}'`);
  const answers = await database.query<{ nodeid: number; success: boolean; result: string }>(
    `SELECT * FROM run_command_on_all_nodes($$SELECT json_object_agg(name, setting) FROM pg_settings WHERE name IN (${names})$$,
       give_warning_for_connection_errors := true)`,
  );
  return nodes.flatMap(({ id, name }) => {
    const answer = answers.find(({ nodeid }) => nodeid === id);
    if (!answer?.success) return [`the node ${name} can't be reached: ${answer?.result ?? 'no answer'}`];
    const settings: NodeSettings = JSON.parse(answer.result);
    return Object.entries(nodeSettings).flatMap(([setting, { isRight, remedy }]) => {
      const value = settings[setting] ?? '';
      return isRight(value, settings) ? [] : [`${setting} is ${value} on ${name}: set it to ${remedy}`];
    });
  });
}

/** @throws Problem `conflict` if this node isn't the one that changes the schema of all nodes */
export async function requireCoordinator(database: Lane): Promise<void> {
  const [own] = await database.query<{ group: number }>('SELECT groupid AS "group" FROM pg_dist_local_group');
  if (own?.group !== 0)
    throw new Problem('conflict', "This node isn't the coordinator of the database. Put the coordinator first in DATABASE_URL.");
}

/** Finds nodes on which the role lacks settings that shards need, because it was created there later. */
export async function findRoleFaults(database: Lane): Promise<string[]> {
  const isMissing = Object.entries(roleSettings).map(([name, value]) => `current_setting('${name}') <> '${value}'`);
  const rows = await database.query<{ node: number }>(
    `SELECT nodeid AS node FROM run_command_on_all_nodes($$SELECT ${isMissing.join(' OR ')}$$, give_warning_for_connection_errors := true)
     WHERE result = 't'`,
  );
  return rows.map(
    ({ node }) => `the role's settings are missing on node ${node}: run there: ${roleStatements('ROLE', 'DATABASE').join('; ')}`,
  );
}

function roleStatements(role: string, name: string): string[] {
  return Object.entries(roleSettings).map(([setting, value]) => `ALTER ROLE ${role} IN DATABASE ${name} SET ${setting} = ${value}`);
}

/** In ms. Moving millions of calls can take longer than the usual limit for a statement. */
const patient = { query_timeout: 36_000_000 };

export async function countCalls({ read }: Lane): Promise<number> {
  return read.transaction(async (trx) => {
    await trx.raw('SET LOCAL statement_timeout = 0');
    const row = await trx('calls').count({ calls: '*' }).first<{ calls: string | number }>().options(patient);
    return Number(row.calls);
  });
}

/**
 * Divides the calls into shards, in one transaction.
 *
 * @throws Problem `conflict` if a core is running, or the database already has shards
 */
export async function createShards(database: Lane, count: number): Promise<void> {
  await database.write.transaction(async (trx) => {
    const run = (sql: string) => trx.raw(sql).options(patient);
    const ask = async <Found extends object>(sql: string) => database.query<Found>(sql, [], trx);
    await database.lockMigrations(trx);
    await run(`SET LOCAL citus.multi_shard_modify_mode = 'sequential'`);
    // Without this lock, a core that starts now could place or cancel calls in the tables that are about to be dropped.
    await run(`LOCK TABLE ${shardTables} IN ACCESS EXCLUSIVE MODE`);
    // No core is running, so these are campaigns whose deletion didn't end (directory/directory.ts). Their calls have the end of the ID.
    await run(`UPDATE campaigns SET id = right(id, 36) WHERE id LIKE 'deleting-%'`);
    const [place] = await ask<{ schema: string; role: string; name: string }>(
      `SELECT current_schema() AS schema, quote_ident(current_user) AS role, quote_ident(current_database()) AS name`,
    );
    if (!place) throw new Error('The server returned no schema.');
    const tables = `c.relnamespace = '${place.schema}'::regnamespace AND c.relname IN (${shardTables.map((name) => `'${name}'`)})`;
    const definitions = await ask<{ sql: string }>(
      `SELECT format('ALTER TABLE %I ADD CONSTRAINT %I %s', c.relname, k.conname, pg_get_constraintdef(k.oid)) AS sql
       FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE ${tables} AND k.contype IN ('p', 'u')
       UNION ALL SELECT replace(pg_get_indexdef(i.indexrelid), format(' ON %I.', '${place.schema}'), ' ON ')
       FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
       WHERE ${tables} AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)`,
    );
    for (let shard = 0; shard < count; shard++) {
      const schema = shardSchema(shard);
      await run(`CREATE SCHEMA ${schema}`);
      await run(`SET LOCAL search_path = ${schema}`);
      for (const table of shardTables)
        await run(`CREATE TABLE ${table} (LIKE ${place.schema}.${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
      for (const { sql } of definitions) await run(sql);
      // This table has no primary key. Without this setting, the rows that housekeeping deletes couldn't be replicated while a shard moves.
      await run('ALTER TABLE call_count_changes REPLICA IDENTITY FULL');
      await run(`SET LOCAL search_path = ${place.schema}`);
      await run(`SELECT citus_schema_distribute('${schema}')`);
      for (const table of shardTables)
        await run(`INSERT INTO ${schema}.${table} SELECT t.* FROM campaigns c JOIN ${table} t ON t.campaign_id = c.id
          WHERE ${shardNumberSql('c.id', count)} = ${shard}`);
    }
    await run(`DROP TABLE ${shardTables}`);
    await trx(migrationsTable).insert({ name: shardsName(count) });
    await spread(run, ask);
    for (const statement of roleStatements(place.role, place.name)) await run(statement);
  });
  database.useShards(count);
}

/** Copies the tables that each node needs to all nodes, and puts the other tables on one node. */
async function spread(run: (sql: string) => Promise<unknown>, ask: <Found extends object>(sql: string) => Promise<Found[]>): Promise<void> {
  for (const table of copiedTables) await run(`SELECT create_reference_table('${table}')`);
  const names = singleTables.map((name) => `'${name}'::regclass`);
  // A foreign key is possible only once both tables are on the same nodes, so drop them and add them again.
  const keys = await ask<{ drop: string; add: string }>(
    `SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS drop,
       format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS add
     FROM pg_constraint WHERE contype = 'f' AND conrelid IN (${names}) AND confrelid IN (${names})`,
  );
  for (const { drop } of keys) await run(drop);
  for (const [n, table] of singleTables.entries())
    await run(`SELECT create_distributed_table('${table}', NULL, colocate_with => '${n === 0 ? 'none' : singleTables[0]}')`);
  for (const { add } of keys) await run(add);
  // Delete the original rows, because they'd stay on the coordinator's disk, where no query sees them.
  for (const table of [...copiedTables, ...singleTables]) await run(`SELECT truncate_local_data_after_distributing_table('${table}')`);
}
