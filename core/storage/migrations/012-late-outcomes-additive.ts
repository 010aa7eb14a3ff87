import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * An outcome that the provider reports late now replaces `unknown`, and charts then count the call by its outcome. The trigger handles a
 * change that cores of earlier releases never make. Calls that wait for another attempt now lapse like queued ones, and the index finds
 * them. A new table contains reports by cores whose provider isn't accepting calls.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const bigint = dialect === 'postgres' ? 'bigint' : 'integer';
  const statements = [
    `ALTER TABLE calls ADD COLUMN told_late_at ${bigint}`,
    `CREATE INDEX calls_lapsing_between_tries ON calls (not_after)
     WHERE state = 'dialing' AND handoff = 'retry' AND not_after IS NOT NULL`,
    `CREATE TABLE dialer_troubles (
      core text NOT NULL PRIMARY KEY,
      since ${bigint} NOT NULL,
      reason text NOT NULL,
      noted_at ${bigint} NOT NULL
    )${dialect === 'postgres' ? '' : ' STRICT'}`,
    ...(dialect === 'postgres' ? postgres : sqlite),
  ];
  for (const statement of statements) await trx.raw(statement).options(patient);
}

/** In ms. Reading millions of rows for an index can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };

const isReplaced = `OLD.state = 'unknown' AND NEW.state <> 'unknown'`;
const counted = (state: string, calls: number) => `(NEW.campaign_id, NEW.placed_at - NEW.placed_at % 900000, ${state}, ${calls})`;
const columns = '(campaign_id, quarter_at, state, calls)';

const sqlite = [
  `CREATE TRIGGER count_replaced AFTER UPDATE OF state ON calls WHEN ${isReplaced}
   BEGIN
     INSERT INTO call_counts ${columns} VALUES ${counted('OLD.state', -1)}, ${counted('NEW.state', 1)}
     ON CONFLICT DO UPDATE SET calls = calls + excluded.calls;
   END`,
];

const postgres = [
  `CREATE FUNCTION count_replaced_call() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     INSERT INTO call_count_changes ${columns} VALUES ${counted('OLD.state', -1)}, ${counted('NEW.state', 1)};
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER count_replaced AFTER UPDATE OF state ON calls FOR EACH ROW WHEN (${isReplaced}) EXECUTE FUNCTION count_replaced_call()`,
];
