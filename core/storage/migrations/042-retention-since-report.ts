import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * The retention period of a call with a late outcome now begins when the outcome was reported. With this index, the calls that are due to
 * be erased are one short range again, as after migration 031.
 */
export async function upCalls(trx: Knex, dialect: Dialect): Promise<void> {
  const latest = `${dialect === 'postgres' ? 'greatest' : 'max'}(ended_at, coalesce(dialed_at, ended_at), coalesce(told_late_at, ended_at))`;
  const statements = [
    `DROP INDEX calls_to_erase`,
    `CREATE INDEX calls_to_erase ON calls ((${latest})) WHERE ended_at IS NOT NULL AND phone IS NOT NULL`,
  ];
  for (const statement of statements) await trx.raw(statement).options(patient);
}

/** In ms. Creating an index on millions of rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
