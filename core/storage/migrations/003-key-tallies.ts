import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Stores the number of keys in each list's scope, because counting a million takes twenty times as long as listing the newest. Triggers
 * update the counts, so that no statement that adds or removes keys is missed. The count is the sum of a scope's rows. On PostgreSQL, each
 * change adds rows, because otherwise all users who create or revoke keys would wait for each other, and for imports.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  for (const statement of dialect === 'postgres' ? postgres : sqlite) await trx.raw(statement).options(patient);
}

/** In ms. Counting millions of keys for the first time can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };

/** The columns that keys are listed by. In the counts, `scope` is the name of one of them, and `id` is its value. */
const scopes = ['creator_id', 'creator_partner_id', 'account_id', 'partner_id'] as const;

/** Builds the SQL for the scopes of the keys in a table, which may be the row of a trigger. */
const scopesOf = (key: string) => `(VALUES ${scopes.map((column) => `('${column}', ${key}.${column})`).join(', ')})`;

const postgres = [
  // A core of an earlier release may be running. Keys that it adds between the count and the trigger would never be counted.
  `LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE`,
  `CREATE TABLE api_key_tallies (scope text NOT NULL, id text COLLATE "C" NOT NULL, keys bigint NOT NULL)`,
  `INSERT INTO api_key_tallies
   SELECT s.scope, s.id, count(*) FROM api_keys k CROSS JOIN LATERAL ${scopesOf('k')} AS s (scope, id) WHERE s.id IS NOT NULL GROUP BY 1, 2`,
  `CREATE INDEX api_key_tallies_of_scope ON api_key_tallies (scope, id)`,
  `CREATE FUNCTION tally_api_keys() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     INSERT INTO api_key_tallies
     SELECT s.scope, s.id, CASE TG_OP WHEN 'DELETE' THEN -count(*) ELSE count(*) END
     FROM changed k CROSS JOIN LATERAL ${scopesOf('k')} AS s (scope, id) WHERE s.id IS NOT NULL GROUP BY 1, 2;
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER tally_added AFTER INSERT ON api_keys REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tally_api_keys()`,
  `CREATE TRIGGER tally_removed AFTER DELETE ON api_keys REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tally_api_keys()`,
  // Only one of a key's scopes can change: its creator's partner.
  `CREATE FUNCTION tally_moved_api_key() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     INSERT INTO api_key_tallies
     SELECT 'creator_partner_id', s.id, s.keys FROM (VALUES (OLD.creator_partner_id, -1), (NEW.creator_partner_id, 1)) AS s (id, keys)
     WHERE s.id IS NOT NULL;
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER tally_moved AFTER UPDATE OF creator_partner_id ON api_keys FOR EACH ROW
   WHEN (OLD.creator_partner_id IS DISTINCT FROM NEW.creator_partner_id) EXECUTE FUNCTION tally_moved_api_key()`,
];

const tally = (rows: string) =>
  `INSERT INTO api_key_tallies SELECT * FROM (${rows}) WHERE id IS NOT NULL ON CONFLICT DO UPDATE SET keys = keys + excluded.keys`;
const change = (key: 'NEW' | 'OLD', by: 1 | -1) =>
  tally(scopes.map((column) => `SELECT '${column}' AS scope, ${key}.${column} AS id, ${by} AS keys`).join(' UNION ALL '));

const sqlite = [
  `CREATE TABLE api_key_tallies (scope text NOT NULL, id text NOT NULL, keys integer NOT NULL, PRIMARY KEY (scope, id)) STRICT, WITHOUT ROWID`,
  ...scopes.map(
    (column) =>
      `INSERT INTO api_key_tallies SELECT '${column}', ${column}, count(*) FROM api_keys WHERE ${column} IS NOT NULL GROUP BY ${column}`,
  ),
  `CREATE TRIGGER tally_added AFTER INSERT ON api_keys BEGIN ${change('NEW', 1)}; END`,
  `CREATE TRIGGER tally_removed AFTER DELETE ON api_keys BEGIN ${change('OLD', -1)}; END`,
  `CREATE TRIGGER tally_moved AFTER UPDATE OF creator_partner_id ON api_keys WHEN OLD.creator_partner_id IS NOT NEW.creator_partner_id
   BEGIN ${tally(
     `SELECT 'creator_partner_id' AS scope, OLD.creator_partner_id AS id, -1 AS keys
      UNION ALL SELECT 'creator_partner_id', NEW.creator_partner_id, 1`,
   )}; END`,
];
