import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * With this index, a page of a key's calls takes one short range per state, no matter how many calls other keys have placed. A call is
 * added to the index once nothing is left to do for it, so placing a call doesn't become more expensive. Until then, it's found in the
 * queue. The index also contains the campaign, so that PostgreSQL can count matches without reading their rows. For the same reason,
 * PostgreSQL's index of the counts for charts now includes the counts. On SQLite, the table of these counts is its own index.
 */
export async function upCalls(trx: Knex, dialect: Dialect): Promise<void> {
  const statements = [
    `CREATE INDEX calls_by_api_key ON calls (api_key_id, state, contact_id, campaign_id) WHERE due_at IS NULL`,
    ...(dialect === 'postgres' ? withCounts : []),
  ];
  for (const statement of statements) await trx.raw(statement).options(patient);
}

/** Citus accepts only one change of a constraint in each statement. */
const withCounts = [
  `ALTER TABLE call_counts DROP CONSTRAINT call_counts_pkey`,
  `ALTER TABLE call_counts ADD PRIMARY KEY (campaign_id, quarter_at, state) INCLUDE (calls)`,
];

/** In ms. Creating an index on millions of rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
