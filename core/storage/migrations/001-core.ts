import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/** Creates the tables for partners, accounts, campaigns, users, keys, sessions, throttle counters, audit events and calls. */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  // IDs sort by bytes in both dialects, which is also the fastest order.
  const id = dialect === 'postgres' ? 'text COLLATE "C"' : 'text';
  const instant = dialect === 'postgres' ? 'bigint' : 'integer';
  const strict = dialect === 'postgres' ? '' : 'STRICT';

  const statements = [
    `CREATE TABLE partners (
      id ${id} PRIMARY KEY,
      external_id text UNIQUE,
      name text NOT NULL,
      created_at ${instant} NOT NULL
    ) ${strict}`,

    `CREATE TABLE accounts (
      id ${id} PRIMARY KEY,
      external_id text UNIQUE,
      partner_id ${id} NOT NULL REFERENCES partners (id),
      name text NOT NULL,
      created_at ${instant} NOT NULL
    ) ${strict}`,
    `CREATE INDEX accounts_of_partner ON accounts (partner_id)`,

    `CREATE TABLE campaigns (
      id ${id} PRIMARY KEY,
      external_id text UNIQUE,
      account_id ${id} NOT NULL REFERENCES accounts (id),
      name text NOT NULL,
      created_at ${instant} NOT NULL
    ) ${strict}`,
    `CREATE INDEX campaigns_of_account ON campaigns (account_id)`,

    // partner_id is the user's partner. For an account user, it's the account's partner.
    `CREATE TABLE users (
      id ${id} PRIMARY KEY,
      external_id text UNIQUE,
      email text NOT NULL UNIQUE,
      name text NOT NULL,
      user_type text NOT NULL,
      account_id ${id} REFERENCES accounts (id),
      partner_id ${id} REFERENCES partners (id),
      password_hash text NOT NULL,
      password_expires_at ${instant},
      created_at ${instant} NOT NULL,
      last_sign_in_at ${instant},
      CHECK (
        user_type = 'account' AND account_id IS NOT NULL AND partner_id IS NOT NULL
        OR user_type = 'partner' AND partner_id IS NOT NULL
        OR user_type = 'staff' AND account_id IS NULL AND partner_id IS NULL
      )
    ) ${strict}`,
    `CREATE INDEX users_of_partner ON users (partner_id)`,
    `CREATE INDEX users_of_account ON users (account_id)`,

    // account_id and partner_id are the scope in which a key was created. creator_partner_id is its creator's current partner. It changes
    // with the creator, so that the newest keys of a partner are one range of an index.
    `CREATE TABLE api_keys (
      id ${id} PRIMARY KEY,
      digest ${id} NOT NULL UNIQUE,
      name text NOT NULL,
      creator_id ${id} NOT NULL REFERENCES users (id),
      creator_partner_id ${id},
      account_id ${id} REFERENCES accounts (id),
      partner_id ${id} NOT NULL REFERENCES partners (id),
      created_at ${instant} NOT NULL,
      expires_at ${instant},
      expiry_time_zone text,
      last_used_at ${instant}
    ) ${strict}`,
    `CREATE INDEX api_keys_by_creator ON api_keys (creator_id, created_at, id)`,
    `CREATE INDEX api_keys_by_creator_partner ON api_keys (creator_partner_id, created_at, id)`,
    `CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at, id)`,
    `CREATE INDEX api_keys_by_partner ON api_keys (partner_id, created_at, id)`,

    // The remaining data of a revoked key, so that calls can still say which key placed them. The digest is permanently deleted.
    `CREATE TABLE retired_api_keys (
      id ${id} PRIMARY KEY,
      name text NOT NULL,
      creator_id ${id} NOT NULL,
      creator_name text NOT NULL,
      creator_partner_id ${id},
      account_id ${id},
      partner_id ${id} NOT NULL,
      retired_at ${instant} NOT NULL
    ) ${strict}`,

    `CREATE TABLE sessions (
      id ${id} PRIMARY KEY,
      user_id ${id} NOT NULL REFERENCES users (id),
      tenancy_kind text,
      tenancy_id ${id},
      started_at ${instant} NOT NULL,
      last_seen_at ${instant} NOT NULL
    ) ${strict}`,
    `CREATE INDEX sessions_of_user ON sessions (user_id)`,
    `CREATE INDEX sessions_by_last_seen ON sessions (last_seen_at)`,

    // The number of points in a window that ends at `expire`.
    `CREATE TABLE sign_in_attempts (
      key text PRIMARY KEY,
      points integer NOT NULL DEFAULT 0,
      expire ${instant}
    ) ${strict}`,

    `CREATE TABLE audit_events (
      id ${id} PRIMARY KEY,
      at ${instant} NOT NULL,
      actor_id ${id},
      actor_name text,
      action text NOT NULL,
      subject_kind text NOT NULL,
      subject_id ${id} NOT NULL,
      subject_name text NOT NULL,
      account_id ${id},
      partner_id ${id},
      address text NOT NULL
    ) ${strict}`,
    `CREATE INDEX audit_events_of_account ON audit_events (account_id, id)`,
    `CREATE INDEX audit_events_of_partner ON audit_events (partner_id, id)`,
    `CREATE INDEX audit_events_of_actor ON audit_events (actor_id, id)`,

    // There are no foreign keys, because each would lock a row for every call. Campaigns are never deleted, and a call outlives the key
    // that placed it. contact_ids increase with time, so rows are added at the end of the table and its indexes. due_at is when the dialer
    // has to handle a call next, or null if nothing is left to do. attempt counts the claims, so that the result of an expired claim is
    // ignored. handoff: null, not tried yet; open, an attempt is in progress; retry, it has definitely failed; doubt, it may have arrived;
    // taken, the provider has the call.
    `CREATE TABLE calls (
      contact_id ${id} PRIMARY KEY,
      campaign_id ${id} NOT NULL,
      account_id ${id} NOT NULL,
      request_id ${id} NOT NULL,
      api_key_id ${id} NOT NULL,
      state text NOT NULL,
      phone text,
      name text,
      time_zone text,
      variables text,
      not_before ${instant},
      not_after ${instant},
      placed_at ${instant} NOT NULL,
      cancelled_at ${instant},
      due_at ${instant},
      attempt integer NOT NULL DEFAULT 0,
      first_attempt_at ${instant},
      handoff text,
      provider text,
      dialed_at ${instant},
      ended_at ${instant},
      duration_seconds integer,
      detail text,
      UNIQUE (campaign_id, request_id)
    ) ${dialect === 'postgres' ? '' : 'STRICT, WITHOUT ROWID'}`,
    `CREATE INDEX calls_queued_by_api_key ON calls (api_key_id) WHERE state = 'queued'`,
    `CREATE INDEX calls_of_campaign ON calls (campaign_id, contact_id)`,
    `CREATE INDEX calls_due ON calls (account_id, due_at, contact_id) WHERE due_at IS NOT NULL`,
    `CREATE INDEX calls_lapsing ON calls (not_after) WHERE state = 'queued' AND not_after IS NOT NULL`,
    `CREATE INDEX calls_to_erase ON calls (ended_at) WHERE ended_at IS NOT NULL AND phone IS NOT NULL`,
  ];
  for (const statement of statements) await trx.raw(statement);
}
