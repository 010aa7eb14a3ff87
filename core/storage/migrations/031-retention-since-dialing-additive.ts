import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Makes the calls that are due to be erased one short range of an index again, now that a call's retention period begins at its end, but
 * not before it was dialed. Without this index, each run would read all calls for which the provider reports too early an end. The previous
 * release's erasing can use it, too, but reads more.
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
