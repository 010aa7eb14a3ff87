import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Gives each audit event a number, and a hash of the event and the hash before it, so that a missing or changed event is noticed. Events
 * don't get these when they're written, because each transaction with an event would then have to wait for the previous one. Housekeeping
 * adds them within a minute, also to existing events and to events from older cores.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const bigint = dialect === 'postgres' ? 'bigint' : 'integer';
  const statements = [
    `ALTER TABLE audit_events ADD COLUMN seq ${bigint}`,
    `ALTER TABLE audit_events ADD COLUMN hash text`,
    `CREATE UNIQUE INDEX audit_events_in_chain ON audit_events (seq) WHERE seq IS NOT NULL`,
    `CREATE INDEX audit_events_unchained ON audit_events (id) WHERE seq IS NULL`,
    `CREATE INDEX audit_events_of_backups ON audit_events (at) WHERE action = 'backup.created'`,

    // A single row: the newest event of the chain, and the newest one that was pruned. The hash of the oldest remaining event is based on
    // the hash of that pruned event.
    `CREATE TABLE audit_chain (
      one integer PRIMARY KEY CHECK (one = 1),
      seq ${bigint} NOT NULL,
      hash text NOT NULL,
      pruned_seq ${bigint} NOT NULL,
      pruned_hash text NOT NULL
    )${dialect === 'postgres' ? '' : ' STRICT'}`,
    `INSERT INTO audit_chain (one, seq, hash, pruned_seq, pruned_hash) VALUES (1, 0, '', 0, '')`,
  ];
  for (const statement of statements) await trx.raw(statement).options(patient);
}

/** In ms. Creating an index on millions of rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
