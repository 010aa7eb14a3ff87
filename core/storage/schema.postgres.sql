-- The same tables and columns as in schema.sqlite.sql, which explains them. Only what differs is explained here.
-- IDs sort by their bytes on both databases, which is also the fastest order: COLLATE "C".

CREATE TABLE schema_migrations (name text PRIMARY KEY);

CREATE TABLE partners (
  id text COLLATE "C" PRIMARY KEY, external_id text UNIQUE, name text NOT NULL, created_at bigint NOT NULL,
  has_do_not_call bigint, do_not_call_version bigint, rules_version bigint
);

CREATE TABLE accounts (
  id text COLLATE "C" PRIMARY KEY, external_id text UNIQUE, partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
  name text NOT NULL, created_at bigint NOT NULL,
  has_do_not_call bigint, opt_outs_for_partner bigint
);
CREATE INDEX accounts_of_partner ON accounts (partner_id);

CREATE TABLE campaigns (
  id text COLLATE "C" PRIMARY KEY, external_id text UNIQUE, account_id text COLLATE "C" NOT NULL REFERENCES accounts (id),
  name text NOT NULL, created_at bigint NOT NULL,
  settings text
);
CREATE INDEX campaigns_of_account ON campaigns (account_id);

CREATE TABLE users (
  id text COLLATE "C" PRIMARY KEY, external_id text UNIQUE, email text NOT NULL UNIQUE, name text NOT NULL,
  user_type text NOT NULL, account_id text COLLATE "C" REFERENCES accounts (id), partner_id text COLLATE "C" REFERENCES partners (id),
  password_hash text NOT NULL, password_expires_at bigint, password_handed_out integer, sign_in_version text NOT NULL DEFAULT '',
  created_at bigint NOT NULL, last_sign_in_at bigint, disabled_at bigint,
  deleted_at bigint, cancelling_since bigint, moving_keys text,
  CHECK (
    user_type = 'account' AND account_id IS NOT NULL AND partner_id IS NOT NULL
    OR user_type = 'partner' AND partner_id IS NOT NULL
    OR user_type = 'staff' AND account_id IS NULL AND partner_id IS NULL
  )
);
CREATE INDEX users_of_partner ON users (partner_id);
CREATE INDEX users_of_account ON users (account_id);
CREATE INDEX users_deleted ON users (id) WHERE deleted_at IS NOT NULL;
CREATE INDEX users_moving_keys ON users (id) WHERE moving_keys IS NOT NULL;

CREATE TABLE second_factors (
  user_id text COLLATE "C" PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE, secret text NOT NULL, confirmed_at bigint, last_step bigint
);
CREATE TABLE recovery_codes (
  user_id text COLLATE "C" NOT NULL REFERENCES second_factors (user_id) ON DELETE CASCADE, digest text NOT NULL,
  PRIMARY KEY (user_id, digest)
);

CREATE TABLE oidc_links (
  user_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  issuer text NOT NULL, subject text NOT NULL, linked_at bigint NOT NULL, UNIQUE (issuer, subject)
);

CREATE TABLE sign_in_codes (
  digest text NOT NULL PRIMARY KEY, user_id text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  issuer text NOT NULL, subject text NOT NULL DEFAULT '', sign_in_version text NOT NULL DEFAULT '',
  challenge text NOT NULL, expires_at bigint NOT NULL
);
CREATE INDEX sign_in_codes_by_user ON sign_in_codes (user_id);

CREATE TABLE sessions (
  id text COLLATE "C" PRIMARY KEY, user_id text COLLATE "C" NOT NULL REFERENCES users (id), tenancy_kind text, tenancy_id text COLLATE "C",
  started_at bigint NOT NULL, last_seen_at bigint NOT NULL,
  issuer text, half_open_until bigint, began_with_link integer
);
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_by_last_seen ON sessions (last_seen_at);

CREATE TABLE sign_in_attempts (key text PRIMARY KEY, attempts integer NOT NULL DEFAULT 0, expires_at bigint);

CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY, digest text COLLATE "C" NOT NULL UNIQUE, name text NOT NULL,
  creator_id text COLLATE "C" NOT NULL REFERENCES users (id), creator_partner_id text COLLATE "C",
  account_id text COLLATE "C" REFERENCES accounts (id), partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
  created_at bigint NOT NULL, expires_at bigint, expiry_time_zone text, time_zone text,
  limits_version text, addresses text, calls_per_day bigint,
  last_used_at bigint, last_used_address text
);
CREATE INDEX api_keys_by_creator ON api_keys (creator_id, created_at, id);
CREATE INDEX api_keys_by_creator_partner ON api_keys (creator_partner_id, created_at, id, creator_id);
CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at, id, creator_id);
CREATE INDEX api_keys_by_partner ON api_keys (partner_id, created_at, id, creator_id);
CREATE INDEX api_keys_by_end ON api_keys (expires_at);
CREATE INDEX api_keys_by_creator_end ON api_keys (creator_id, expires_at);

CREATE TABLE revoked_api_keys (
  id text COLLATE "C" PRIMARY KEY, name text NOT NULL, creator_id text COLLATE "C" NOT NULL, creator_name text NOT NULL,
  creator_partner_id text COLLATE "C", account_id text COLLATE "C", partner_id text COLLATE "C" NOT NULL,
  revoked_at bigint NOT NULL, cancelling_since bigint
);
CREATE INDEX revoked_api_keys_cancelling ON revoked_api_keys (id) WHERE cancelling_since IS NOT NULL;

CREATE TABLE api_key_usage (
  api_key_id text COLLATE "C" NOT NULL, quarter_at bigint NOT NULL, placed bigint NOT NULL, cancelled bigint NOT NULL,
  refused bigint NOT NULL DEFAULT 0, PRIMARY KEY (api_key_id, quarter_at)
);
CREATE INDEX api_key_usage_to_forget ON api_key_usage (quarter_at);

CREATE TABLE api_key_days (
  api_key_id text COLLATE "C" NOT NULL, day text COLLATE "C" NOT NULL, placed bigint NOT NULL, PRIMARY KEY (api_key_id, day)
);
CREATE INDEX api_key_days_to_forget ON api_key_days (day);

CREATE TABLE api_key_addresses (
  api_key_id text COLLATE "C" NOT NULL, address text COLLATE "C" NOT NULL, used_at bigint NOT NULL, PRIMARY KEY (api_key_id, address)
);
CREATE INDEX api_key_addresses_newest ON api_key_addresses (api_key_id, used_at);
CREATE INDEX api_key_addresses_to_forget ON api_key_addresses (used_at);

CREATE TABLE protection_rules (
  scope_id text COLLATE "C" PRIMARY KEY, partner_id text COLLATE "C" NOT NULL, hours text, countries text, kinds text, pace text, contact_limits text,
  changed text
);
CREATE INDEX protection_rules_changed ON protection_rules (scope_id) WHERE changed IS NOT NULL;

CREATE TABLE dialing_stops (
  id text COLLATE "C" PRIMARY KEY, scope text NOT NULL, scope_id text COLLATE "C" NOT NULL UNIQUE, account_id text COLLATE "C", partner_id text COLLATE "C",
  at bigint NOT NULL, by_id text COLLATE "C", by_name text, by_type text NOT NULL, reason text, cancelling_since bigint
);
CREATE INDEX dialing_stops_of_partner ON dialing_stops (partner_id);

CREATE TABLE dialing_paces (scope_id text COLLATE "C" PRIMARY KEY, next_at bigint NOT NULL, spread_until bigint NOT NULL);

CREATE TABLE do_not_call (
  id text COLLATE "C" PRIMARY KEY, scope_id text COLLATE "C" NOT NULL, phone text COLLATE "C" NOT NULL,
  account_id text COLLATE "C", partner_id text COLLATE "C" NOT NULL,
  reason text NOT NULL, note text, source text NOT NULL, campaign_id text COLLATE "C", contact_id text COLLATE "C",
  created_by_id text COLLATE "C", created_by_name text, created_at bigint NOT NULL, ends_at bigint
);
CREATE UNIQUE INDEX do_not_call_numbers ON do_not_call (scope_id, phone);
CREATE INDEX do_not_call_of_partner ON do_not_call (partner_id, id);
CREATE INDEX do_not_call_of_account ON do_not_call (account_id, id) WHERE account_id IS NOT NULL;
CREATE INDEX do_not_call_of_partner_by_number ON do_not_call (partner_id, phone, id);
CREATE INDEX do_not_call_ending ON do_not_call (ends_at) WHERE ends_at IS NOT NULL;

CREATE TABLE do_not_call_additions (
  partner_id text COLLATE "C" NOT NULL, version bigint NOT NULL, phones text NOT NULL, PRIMARY KEY (partner_id, version)
);

CREATE TABLE do_not_call_sweeps (
  scope_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C", partner_id text COLLATE "C" NOT NULL, token text COLLATE "C" NOT NULL
);

CREATE TABLE calls (
  contact_id text COLLATE "C" NOT NULL, campaign_id text COLLATE "C" NOT NULL, account_id text COLLATE "C" NOT NULL,
  request_id text COLLATE "C" NOT NULL, api_key_id text COLLATE "C" NOT NULL,
  state text NOT NULL, phone text, name text, time_zone text, variables text, not_before bigint, not_after bigint,
  placed_at bigint NOT NULL, cancelled_at bigint, due_at bigint,
  attempt integer NOT NULL DEFAULT 0, first_attempt_at bigint, handoff text, provider text, dialed_at bigint,
  ended_at bigint, duration_seconds integer, detail text, late_outcome_at bigint, held_until bigint, held_for text,
  response_held_until bigint, answered_by text,
  PRIMARY KEY (campaign_id, contact_id), UNIQUE (campaign_id, request_id)
);
CREATE INDEX calls_due ON calls (account_id, due_at, placed_at, api_key_id, contact_id) WHERE due_at IS NOT NULL;
CREATE INDEX calls_held ON calls (held_until) WHERE held_until IS NOT NULL AND due_at IS NOT NULL;
CREATE INDEX calls_lapsing ON calls (not_after) WHERE state = 'queued' AND not_after IS NOT NULL;
CREATE INDEX calls_lapsing_between_tries ON calls (not_after) WHERE state = 'dialing' AND handoff = 'retry' AND not_after IS NOT NULL;
CREATE UNIQUE INDEX calls_handed_off ON calls (contact_id) WHERE handoff IS NOT NULL;
CREATE INDEX calls_being_dialed ON calls (account_id, campaign_id) WHERE state = 'dialing';
CREATE INDEX calls_of_number ON calls (phone, account_id) WHERE handoff IS NOT NULL AND phone IS NOT NULL;
CREATE INDEX calls_in_uncommon_states ON calls (campaign_id, state, contact_id, placed_at, api_key_id)
  WHERE state NOT IN ('queued', 'dialing', 'completed');
CREATE INDEX calls_by_api_key ON calls (api_key_id, state, contact_id, campaign_id) WHERE due_at IS NULL;
CREATE INDEX calls_to_erase ON calls ((greatest(ended_at, coalesce(dialed_at, ended_at), coalesce(late_outcome_at, ended_at))))
  WHERE ended_at IS NOT NULL AND phone IS NOT NULL;

CREATE TABLE call_counts (
  campaign_id text COLLATE "C" NOT NULL, quarter_at bigint NOT NULL, state text NOT NULL, calls bigint NOT NULL,
  -- The counts are in the index, so that a chart doesn't read the table. SQLite's table is its own index.
  PRIMARY KEY (campaign_id, quarter_at, state) INCLUDE (calls)
);
CREATE INDEX call_counts_to_forget ON call_counts (quarter_at);
-- The latest changes of call_counts, which housekeeping adds up, because otherwise all dialers and cancels of a campaign would wait for
-- each other. The statements that end calls add them: triggers run once per row, and aren't possible for tables on several machines.
CREATE TABLE call_count_changes (
  campaign_id text COLLATE "C" NOT NULL, quarter_at bigint NOT NULL, state text NOT NULL, calls bigint NOT NULL
);

CREATE TABLE audit_events (
  id text COLLATE "C" PRIMARY KEY, at bigint NOT NULL, actor_id text COLLATE "C", actor_name text, action text NOT NULL,
  subject_kind text NOT NULL, subject_id text COLLATE "C" NOT NULL, subject_name text NOT NULL,
  account_id text COLLATE "C", partner_id text COLLATE "C", address text NOT NULL, detail text, seq bigint, hash text
);
CREATE UNIQUE INDEX audit_events_in_chain ON audit_events (seq) WHERE seq IS NOT NULL;
CREATE INDEX audit_events_unchained ON audit_events (id) WHERE seq IS NULL;
CREATE INDEX audit_events_of_backups ON audit_events (at) WHERE action = 'backup.created';
CREATE INDEX audit_events_of_api_key ON audit_events (subject_id, id) WHERE subject_kind = 'api-key';
CREATE INDEX audit_events_of_account ON audit_events (account_id, id);
CREATE INDEX audit_events_of_account_by_actor ON audit_events (account_id, actor_id, id);
CREATE INDEX audit_events_of_account_by_action ON audit_events (account_id, action, id);
CREATE INDEX audit_events_of_account_by_subject ON audit_events (account_id, subject_id, id, action);
CREATE INDEX audit_events_of_partner ON audit_events (partner_id, id);
CREATE INDEX audit_events_of_partner_by_actor ON audit_events (partner_id, actor_id, id);
CREATE INDEX audit_events_of_partner_by_action ON audit_events (partner_id, action, id);
CREATE INDEX audit_events_of_partner_by_subject ON audit_events (partner_id, subject_id, id, action);
CREATE INDEX audit_events_of_actor ON audit_events (actor_id, id);
CREATE INDEX audit_events_of_actor_by_action ON audit_events (actor_id, action, id, account_id, partner_id);
CREATE INDEX audit_events_of_actor_by_subject ON audit_events (actor_id, subject_id, id, action, account_id, partner_id);

CREATE TABLE audit_chain (
  one integer PRIMARY KEY CHECK (one = 1), seq bigint NOT NULL, hash text NOT NULL,
  pruned_seq bigint NOT NULL, pruned_hash text NOT NULL
);
INSERT INTO audit_chain (one, seq, hash, pruned_seq, pruned_hash) VALUES (1, 0, '', 0, '');

CREATE TABLE clock (one integer PRIMARY KEY CHECK (one = 1), newest_at bigint);
INSERT INTO clock (one, newest_at) VALUES (1, NULL);

CREATE TABLE recorded_retention (one integer PRIMARY KEY CHECK (one = 1), contact_days integer, audit_event_days integer);

CREATE TABLE dialer_troubles (core text NOT NULL PRIMARY KEY, since bigint NOT NULL, reason text NOT NULL, noted_at bigint NOT NULL);
