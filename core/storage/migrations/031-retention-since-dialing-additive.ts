import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * A call's retention period now begins at its end, but not before it was dialed. With this index, the calls that are due to be erased are
 * one short range again. Without it, each run would read all calls for which the provider has reported an end that's too early. The
 * previous release can use the index, too, but reads more of it.
 */
export async function upCalls(trx: Knex, dialect: Dialect): Promise<void> {
  const later = `${dialect === 'postgres' ? 'greatest' : 'max'}(ended_at, coalesce(dialed_at, ended_at))`;
  const statements = [
    `DROP INDEX calls_to_erase`,
    `CREATE INDEX calls_to_erase ON calls ((${later})) WHERE ended_at IS NOT NULL AND phone IS NOT NULL`,
  ];
  for (const statement of statements) await trx.raw(statement).options(patient);
}

/** In ms. Creating an index on millions of rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
