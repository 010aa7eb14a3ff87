import type { Database } from '../../core/storage/engine/database.ts';
import { shardSchema } from '../../core/storage/engine/shards.ts';

/** Gives a complete database the schema of the commit ebd8e993, the last one from before the first release. */
export async function toUnreleased({ write, kind, shards }: Database): Promise<void> {
  const ofCalls = shards().length === 0 ? ['calls'] : shards().map((_, number) => `${shardSchema(number)}.calls`);
  const knexTables =
    kind === 'sqlite'
      ? ['id integer NOT NULL PRIMARY KEY AUTOINCREMENT', '"index" integer NOT NULL PRIMARY KEY AUTOINCREMENT']
      : ['id serial PRIMARY KEY', '"index" serial PRIMARY KEY'];
  const statements = [
    'ALTER TABLE revoked_api_keys RENAME COLUMN revoked_at TO retired_at',
    'ALTER TABLE revoked_api_keys RENAME TO retired_api_keys',
    'CREATE TABLE api_key_tallies (scope text NOT NULL, id text NOT NULL, keys bigint NOT NULL)',
    'ALTER TABLE sign_in_attempts RENAME COLUMN attempts TO points',
    'ALTER TABLE sign_in_attempts RENAME COLUMN expires_at TO expire',
    'ALTER TABLE partners RENAME COLUMN has_do_not_call TO lists_numbers',
    'ALTER TABLE partners RENAME COLUMN do_not_call_version TO lists_version',
    'ALTER TABLE accounts RENAME COLUMN has_do_not_call TO lists_numbers',
    'DROP INDEX revoked_api_keys_cancelling',
    'CREATE INDEX retired_api_keys_cancelling ON retired_api_keys (id) WHERE cancelling_since IS NOT NULL',
    ...ofCalls.flatMap((table) => [
      `ALTER TABLE ${table} RENAME COLUMN late_outcome_at TO told_late_at`,
      `ALTER TABLE ${table} RENAME COLUMN response_held_until TO answered_held_until`,
    ]),
    ...(kind === 'sqlite' ? [] : ['ALTER INDEX revoked_api_keys_pkey RENAME TO retired_api_keys_pkey']),
    'DROP TABLE schema_migrations',
    `CREATE TABLE schema_migrations (${knexTables[0]}, name varchar(255), batch integer, migration_time timestamp)`,
    `CREATE TABLE schema_migrations_lock (${knexTables[1]}, is_locked integer)`,
    ...(shards().length === 0
      ? []
      : ['schema_migrations', 'schema_migrations_lock'].map((name) => `SELECT create_reference_table('${name}')`)),
  ];
  const numbers = [...Array.from({ length: 24 }, (_, n) => n + 1), 30, 31, 32, 33, 41, 42, 43, 45];
  const names = numbers.map((n) => `${String(n).padStart(3, '0')}-${{ 1: 'core', 45: 'canonical-emails' }[n] ?? 'other'}`);
  await write.transaction(async (trx) => {
    if (shards().length > 0) await trx.raw(`SET LOCAL citus.multi_shard_modify_mode = 'sequential'`);
    for (const statement of statements) await trx.raw(statement);
    if (shards().length > 0) names.push(`shards-${shards().length}`);
    await trx.from<{ name: string }>('schema_migrations').insert(names.map((name) => ({ name })));
  });
}
