import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Adds the do-not-call lists, calling hours, and rules about which numbers may be called.
 *
 * Placing a call must not cost more because other accounts have rules. So `accounts` and `partners`, which the statement joins anyway, say
 * whether a scope has a list at all, and which version of its rules is current. The index of numbers contains little else, so that ten
 * million of them fit into memory. The index of the queue now ends with the call, so that a search through calls that are due at the same
 * time can continue where it stopped.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const id = dialect === 'postgres' ? 'text COLLATE "C"' : 'text';
  const bigint = dialect === 'postgres' ? 'bigint' : 'integer';
  const strict = dialect === 'postgres' ? '' : 'STRICT';
  const statements = [
    // 1 from the first entry on. It never changes back.
    `ALTER TABLE accounts ADD COLUMN lists_numbers ${bigint}`,
    `ALTER TABLE partners ADD COLUMN lists_numbers ${bigint}`,
    // 1 if someone who opts out in a call of the account is listed for all of its partner's accounts.
    `ALTER TABLE accounts ADD COLUMN opt_outs_for_partner ${bigint}`,
    // Null until the partner, or one of its accounts or campaigns, has rules. Each change of any of these rules increases it.
    `ALTER TABLE partners ADD COLUMN rules_version ${bigint}`,

    // scope_id is the account or the partner. account_id is null for an entry of the partner. campaign_id and contact_id are the call in
    // which the person asked not to be called.
    `CREATE TABLE do_not_call (
      id ${id} PRIMARY KEY,
      scope_id ${id} NOT NULL,
      phone ${id} NOT NULL,
      account_id ${id},
      partner_id ${id} NOT NULL,
      reason text NOT NULL,
      note text,
      source text NOT NULL,
      campaign_id ${id},
      contact_id ${id},
      created_by_id ${id},
      created_by_name text,
      created_at ${bigint} NOT NULL,
      ends_at ${bigint}
    ) ${strict}`,
    `CREATE UNIQUE INDEX do_not_call_numbers ON do_not_call (scope_id, phone)`,
    `CREATE INDEX do_not_call_of_partner ON do_not_call (partner_id, id)`,
    `CREATE INDEX do_not_call_of_account ON do_not_call (account_id, id) WHERE account_id IS NOT NULL`,
    `CREATE INDEX do_not_call_of_partner_by_number ON do_not_call (partner_id, phone, id)`,
    `CREATE INDEX do_not_call_ending ON do_not_call (ends_at) WHERE ends_at IS NOT NULL`,

    // Scopes with new entries whose queued calls haven't been blocked yet. Each new entry changes the token.
    `CREATE TABLE do_not_call_sweeps (
      scope_id ${id} PRIMARY KEY,
      account_id ${id},
      partner_id ${id} NOT NULL,
      token ${id} NOT NULL
    ) ${strict}`,

    // Each column has JSON; null if the scope has no rules of that kind.
    `CREATE TABLE protection_rules (
      scope_id ${id} PRIMARY KEY,
      partner_id ${id} NOT NULL,
      hours text,
      countries text,
      kinds text
    ) ${strict}`,

    // held_until is when calling hours allow the call. answered_held_until is what the response to the placed call said.
    `ALTER TABLE calls ADD COLUMN held_until ${bigint}`,
    `ALTER TABLE calls ADD COLUMN answered_held_until ${bigint}`,
    `CREATE INDEX calls_held ON calls (held_until) WHERE held_until IS NOT NULL AND due_at IS NOT NULL`,
    // This index finds a number's calls that can no longer be stopped. It contains only calls that are being dialed.
    `CREATE INDEX calls_being_dialed ON calls (phone) WHERE state = 'dialing'`,
    `DROP INDEX calls_due`,
    `CREATE INDEX calls_due ON calls (account_id, due_at, placed_at, api_key_id, contact_id) WHERE due_at IS NOT NULL`,
  ];
  for (const statement of statements) await trx.raw(statement).options(patient);
}

/** In ms. Creating an index on millions of rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
