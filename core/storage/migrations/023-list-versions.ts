import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Adds a version of each partner's do-not-call lists, including those of its accounts. Each transaction that adds entries increases it, so
 * a core knows whether it has seen all of them. Cores of the previous release wouldn't increase it.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const id = dialect === 'postgres' ? 'text COLLATE "C"' : 'text';
  const bigint = dialect === 'postgres' ? 'bigint' : 'integer';
  const strict = dialect === 'postgres' ? '' : 'STRICT';
  const statements = [
    // Null until there's an entry. It's at least the time of the last addition in epoch milliseconds, so that a version that was lost in a
    // failover isn't used again.
    `ALTER TABLE partners ADD COLUMN lists_version ${bigint}`,
    `UPDATE partners SET lists_version = 1
     WHERE lists_numbers IS NOT NULL OR id IN (SELECT partner_id FROM accounts WHERE lists_numbers IS NOT NULL)`,
    // The numbers that each version of the last day added, separated by spaces.
    `CREATE TABLE do_not_call_additions (
      partner_id ${id} NOT NULL,
      version ${bigint} NOT NULL,
      phones text NOT NULL,
      PRIMARY KEY (partner_id, version)
    ) ${strict}`,
  ];
  for (const statement of statements) await trx.raw(statement);
}
