-- The tables, in the order in which one would explain them. README.md has a drawing. IDs sort by time. Instants (`..._at`, `..._until`,
-- `..._since`) are epoch milliseconds. What's different on SQLite is in migrate.ts: {{id}} is text there and, on PostgreSQL, text that sorts by
-- its bytes, like on SQLite, which is also the fastest order. A statement under `-- Only on …` is for that database.

-- The names of the applied migrations and, with Citus, the number of shards: see migrate.ts.
CREATE TABLE schema_migrations (name text PRIMARY KEY);


-- WHO: partners have accounts, and accounts have campaigns. external_id is the ID in the system from which `admin import` reads.

-- has_do_not_call: 1 from the first entry of its do-not-call list on. The statement that places a call joins partners and accounts anyway,
--   so for one without entries, the list costs nothing.
-- do_not_call_version: increased by each transaction that adds entries to the lists of the partner or its accounts, so that a core knows
--   whether it has seen all of them. At least the time of the last addition, so that a version lost in a failover isn't used again.
-- rules_version: increased by each change of the rules of the partner, its accounts or campaigns; null until there are any.
CREATE TABLE partners (
  id {{id}} PRIMARY KEY, external_id text UNIQUE, name text NOT NULL, created_at bigint NOT NULL,
  has_do_not_call bigint, do_not_call_version bigint, rules_version bigint
);

-- opt_outs_for_partner: 1 if someone who opts out in a call of the account is listed for all of its partner's accounts.
CREATE TABLE accounts (
  id {{id}} PRIMARY KEY, external_id text UNIQUE, partner_id {{id}} NOT NULL REFERENCES partners (id),
  name text NOT NULL, created_at bigint NOT NULL,
  has_do_not_call bigint, opt_outs_for_partner bigint
);
CREATE INDEX accounts_of_partner ON accounts (partner_id);

-- settings: a JSON object of names and values for the provider.
CREATE TABLE campaigns (
  id {{id}} PRIMARY KEY, external_id text UNIQUE, account_id {{id}} NOT NULL REFERENCES accounts (id),
  name text NOT NULL, created_at bigint NOT NULL,
  settings text
);
CREATE INDEX campaigns_of_account ON campaigns (account_id);

-- partner_id: the user's partner. For an account user, it's the account's partner. Staff don't have one.
-- password_handed_out: 1 if someone handed the password out, or the one that the user replaced with it, so someone else may know it.
-- sign_in_version: the ID of the audit event of the last change of how the user signs in. What was proved under an earlier one is refused:
--   see domain/sign-in/sessions.ts.
-- disabled_at: while it's set, the user and their keys are refused.
-- deleted_at: set until the user's last key is revoked and the row is deleted. Such a user is also disabled.
-- cancelling_since: set on a deleted user if the queued calls of their keys must be cancelled.
-- moving_keys: the ID of the audit event of the last move, while some of the user's keys are still recorded with an earlier partner.
CREATE TABLE users (
  id {{id}} PRIMARY KEY, external_id text UNIQUE, email text NOT NULL UNIQUE, name text NOT NULL,
  user_type text NOT NULL, account_id {{id}} REFERENCES accounts (id), partner_id {{id}} REFERENCES partners (id),
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

-- A user's authenticator app. It takes effect once it's confirmed. `secret` is encrypted with a key that the database doesn't have.
-- last_step: the time step of the last code that was accepted, so that no code works twice.
CREATE TABLE second_factors (
  user_id {{id}} PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE, secret text NOT NULL, confirmed_at bigint, last_step bigint
);
CREATE TABLE recovery_codes (
  user_id {{id}} NOT NULL REFERENCES second_factors (user_id) ON DELETE CASCADE, digest text NOT NULL,
  PRIMARY KEY (user_id, digest)
);

-- A user's identity at the identity provider. A deleted user's row is kept for a while, so the link is deleted separately.
CREATE TABLE oidc_links (
  user_id {{id}} NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  issuer text NOT NULL, subject text NOT NULL, linked_at bigint NOT NULL, UNIQUE (issuer, subject)
);

-- A code that signs the app in, once, within a minute. It names the identity and the sign_in_version that it's for, because the person may
-- be unlinked while the app waits, and the user linked to someone else.
CREATE TABLE sign_in_codes (
  digest text NOT NULL PRIMARY KEY, user_id {{id}} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  issuer text NOT NULL, subject text NOT NULL DEFAULT '', sign_in_version text NOT NULL DEFAULT '',
  challenge text NOT NULL, expires_at bigint NOT NULL
);
CREATE INDEX sign_in_codes_by_user ON sign_in_codes (user_id);

-- tenancy_kind, tenancy_id: the partner or account that a staff user has selected.
-- issuer: the identity provider that the user signed in with; null for a password.
-- half_open_until: set while the session waits for a code. Until then, it can't be used for anything else.
-- began_with_link: 1 if the user was linked to the identity right before.
CREATE TABLE sessions (
  id {{id}} PRIMARY KEY, user_id {{id}} NOT NULL REFERENCES users (id), tenancy_kind text, tenancy_id {{id}},
  started_at bigint NOT NULL, last_seen_at bigint NOT NULL,
  issuer text, half_open_until bigint, began_with_link integer
);
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_by_last_seen ON sessions (last_seen_at);

-- How many attempts to sign in were counted under a key, such as an address, in a window that ends at expires_at.
CREATE TABLE sign_in_attempts (key text PRIMARY KEY, attempts integer NOT NULL DEFAULT 0, expires_at bigint);


-- API KEYS: only the digest of a key's value is stored.

-- account_id, partner_id: the scope in which the key was created.
-- creator_partner_id: the partner whose administrator sees the key in lists: the creator's current partner or, for staff, partner_id. If
--   the creator moves, it's changed in batches: see users/users.ts.
-- time_zone: the creator's; null for a key that was created before time zones were recorded.
-- limits_version: changes with each change of addresses and calls_per_day, so that the statement that places or cancels a call needs only
--   one comparison to make sure that the process checked the current limits; null if there are none.
-- calls_counted_from: when the key got its daily limit.
-- addresses: networks in CIDR notation, as JSON. last_used_address: the client's in the last request that was recorded.
CREATE TABLE api_keys (
  id {{id}} PRIMARY KEY, digest {{id}} NOT NULL UNIQUE, name text NOT NULL,
  creator_id {{id}} NOT NULL REFERENCES users (id), creator_partner_id {{id}},
  account_id {{id}} REFERENCES accounts (id), partner_id {{id}} NOT NULL REFERENCES partners (id),
  created_at bigint NOT NULL, expires_at bigint, expiry_time_zone text, time_zone text,
  limits_version text, addresses text, calls_per_day bigint, calls_counted_from bigint,
  last_used_at bigint, last_used_address text
);
-- Each scope's newest keys are one range of an index. The last column lets a list skip the keys of users who are being deleted or moved.
CREATE INDEX api_keys_by_creator ON api_keys (creator_id, created_at, id);
CREATE INDEX api_keys_by_creator_partner ON api_keys (creator_partner_id, created_at, id, creator_id);
CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at, id, creator_id);
CREATE INDEX api_keys_by_partner ON api_keys (partner_id, created_at, id, creator_id);
CREATE INDEX api_keys_by_end ON api_keys (expires_at);
CREATE INDEX api_keys_by_creator_end ON api_keys (creator_id, expires_at);

-- What remains of a revoked key, so that calls can still say which key placed them. The digest is permanently deleted.
-- cancelling_since: set while the key's queued calls must be cancelled, so that another process can finish that.
CREATE TABLE revoked_api_keys (
  id {{id}} PRIMARY KEY, name text NOT NULL, creator_id {{id}} NOT NULL, creator_name text NOT NULL,
  creator_partner_id {{id}}, account_id {{id}}, partner_id {{id}} NOT NULL,
  revoked_at bigint NOT NULL, cancelling_since bigint
);
CREATE INDEX revoked_api_keys_cancelling ON revoked_api_keys (id) WHERE cancelling_since IS NOT NULL;

-- A key's use in the quarter-hour that begins at quarter_at: docs/decisions/counts-by-quarter-hour.md. refused: because of the address.
CREATE TABLE api_key_usage (
  api_key_id {{id}} NOT NULL, quarter_at bigint NOT NULL, placed bigint NOT NULL, cancelled bigint NOT NULL,
  refused bigint NOT NULL DEFAULT 0, PRIMARY KEY (api_key_id, quarter_at)
);
CREATE INDEX api_key_usage_to_forget ON api_key_usage (quarter_at);

-- How many calls a key with a daily limit placed on a day of its time zone (YYYY-MM-DD).
CREATE TABLE api_key_days (
  api_key_id {{id}} NOT NULL, day {{id}} NOT NULL, placed bigint NOT NULL, PRIMARY KEY (api_key_id, day)
);
CREATE INDEX api_key_days_to_forget ON api_key_days (day);

-- From which addresses a key was used in the last few days, so that the calls made with a leaked key can be told apart from the others.
CREATE TABLE api_key_addresses (
  api_key_id {{id}} NOT NULL, address {{id}} NOT NULL, used_at bigint NOT NULL, PRIMARY KEY (api_key_id, address)
);
CREATE INDEX api_key_addresses_newest ON api_key_addresses (api_key_id, used_at);
CREATE INDEX api_key_addresses_to_forget ON api_key_addresses (used_at);


-- PROTECTION: scope_id is a partner, an account or, for rules, a campaign.

-- Each column has JSON; null if the scope has no rules of that kind. changed: set if rules that hold calls have changed, and the calls that
-- the previous ones held aren't due yet. Each change sets another value.
CREATE TABLE protection_rules (
  scope_id {{id}} PRIMARY KEY, partner_id {{id}} NOT NULL, hours text, countries text, kinds text, pace text, contact_limits text,
  changed text
);
CREATE INDEX protection_rules_changed ON protection_rules (scope_id) WHERE changed IS NOT NULL;

-- While there's a row, no call of its scope leaves the core. scope_id: '' for the server. by_type: the type of the highest-ranking user who
-- has stopped it, or `operator`: only someone of at least that rank may resume. cancelling_since: set while queued calls still have to be cancelled.
CREATE TABLE dialing_stops (
  id {{id}} PRIMARY KEY, scope text NOT NULL, scope_id {{id}} NOT NULL UNIQUE, account_id {{id}}, partner_id {{id}},
  at bigint NOT NULL, by_id {{id}}, by_name text, by_type text NOT NULL, reason text, cancelling_since bigint
);
CREATE INDEX dialing_stops_of_partner ON dialing_stops (partner_id);

-- When the next call of a scope with a pace may leave, by the database's clock. A claim locks the rows of its scopes, so it's also the lock for
-- counting their live calls and the calls to a number. scope_id: '' for the server. spread_until: when the last call becomes due that waits
-- for a campaign's pace.
CREATE TABLE dialing_paces (scope_id {{id}} PRIMARY KEY, next_at bigint NOT NULL, spread_until bigint NOT NULL);

-- account_id: null for an entry of the partner. campaign_id, contact_id: the call in which the person asked not to be called.
CREATE TABLE do_not_call (
  id {{id}} PRIMARY KEY, scope_id {{id}} NOT NULL, phone {{id}} NOT NULL,
  account_id {{id}}, partner_id {{id}} NOT NULL,
  reason text NOT NULL, note text, source text NOT NULL, campaign_id {{id}}, contact_id {{id}},
  created_by_id {{id}}, created_by_name text, created_at bigint NOT NULL, ends_at bigint
);
-- The index that placing a call uses contains little else, so that ten million numbers fit into memory.
CREATE UNIQUE INDEX do_not_call_numbers ON do_not_call (scope_id, phone);
CREATE INDEX do_not_call_of_partner ON do_not_call (partner_id, id);
CREATE INDEX do_not_call_of_account ON do_not_call (account_id, id) WHERE account_id IS NOT NULL;
CREATE INDEX do_not_call_of_partner_by_number ON do_not_call (partner_id, phone, id);
CREATE INDEX do_not_call_ending ON do_not_call (ends_at) WHERE ends_at IS NOT NULL;

-- The numbers that each version of the last day added, separated by spaces.
CREATE TABLE do_not_call_additions (
  partner_id {{id}} NOT NULL, version bigint NOT NULL, phones text NOT NULL, PRIMARY KEY (partner_id, version)
);

-- Scopes with new entries whose queued calls haven't been blocked yet. Each new entry changes the token.
CREATE TABLE do_not_call_sweeps (
  scope_id {{id}} PRIMARY KEY, account_id {{id}}, partner_id {{id}} NOT NULL, token {{id}} NOT NULL
);


-- CALLS: with Citus, each shard has its own copy of these tables.

-- No foreign keys, because each would lock a row for every call, and a call outlives the key that placed it. domain/calls/call-states.ts
-- explains state, handoff and due_at. If a call was erased, phone, name, time_zone, variables and detail are null.
-- variables: pairs of name and value as JSON, sorted by name. attempt: the number of the last claim, so that the results of earlier ones are ignored.
-- late_outcome_at: when the provider reported the outcome of a call that had been `unknown`.
-- held_until: until when the call waits for calling hours or, according to held_for, for something else. response_held_until: what the
--   response to the placed call said. answered_by: what the provider reported.
-- On SQLite, rows are stored in their order of arrival, because rows with text as their key cost 50% more.
CREATE TABLE calls (
  contact_id {{id}} NOT NULL, campaign_id {{id}} NOT NULL, account_id {{id}} NOT NULL,
  request_id {{id}} NOT NULL, api_key_id {{id}} NOT NULL,
  state text NOT NULL, phone text, name text, time_zone text, variables text, not_before bigint, not_after bigint,
  placed_at bigint NOT NULL, cancelled_at bigint, due_at bigint,
  attempt integer NOT NULL DEFAULT 0, first_attempt_at bigint, handoff text, provider text, dialed_at bigint,
  ended_at bigint, duration_seconds integer, detail text, late_outcome_at bigint, held_until bigint, held_for text,
  response_held_until bigint, answered_by text,
  PRIMARY KEY (campaign_id, contact_id), UNIQUE (campaign_id, request_id)
);
-- The queue: docs/decisions/one-index-for-the-queue.md. Calls that are due at the same time stay in their order of arrival, and a search
-- through them can continue where it stopped.
CREATE INDEX calls_due ON calls (account_id, due_at, placed_at, api_key_id, contact_id) WHERE due_at IS NOT NULL;
CREATE INDEX calls_held ON calls (held_until) WHERE held_until IS NOT NULL AND due_at IS NOT NULL;
CREATE INDEX calls_lapsing ON calls (not_after) WHERE state = 'queued' AND not_after IS NOT NULL;
CREATE INDEX calls_lapsing_between_tries ON calls (not_after) WHERE state = 'dialing' AND handoff = 'retry' AND not_after IS NOT NULL;
-- A call is looked up by contact alone only after it has been handed off.
CREATE UNIQUE INDEX calls_handed_off ON calls (contact_id) WHERE handoff IS NOT NULL;
-- The live calls, which a limit counts.
CREATE INDEX calls_being_dialed ON calls (account_id, campaign_id) WHERE state = 'dialing';
-- A number's calls, for contact limits, and to count those that can no longer be stopped. Placing a call doesn't touch these indexes.
CREATE INDEX calls_of_number ON calls (phone, account_id) WHERE handoff IS NOT NULL AND phone IS NOT NULL;
-- The retention period begins at the end, but not before the call was dialed, or its outcome reported.
CREATE INDEX calls_to_erase ON calls (({{latest}}(ended_at, coalesce(dialed_at, ended_at), coalesce(late_outcome_at, ended_at))))
  WHERE ended_at IS NOT NULL AND phone IS NOT NULL;

-- How many of the calls that were placed in the quarter-hour that begins at quarter_at have ended in a state. If the provider has reported
-- who answered a completed call, its state here is `completed by person` or the like.
CREATE TABLE call_counts (
  campaign_id {{id}} NOT NULL, quarter_at bigint NOT NULL, state text NOT NULL, calls bigint NOT NULL,
  -- The counts are in the index, so that a chart doesn't read the table. SQLite's table is its own index.
  PRIMARY KEY (campaign_id, quarter_at, state){{includeCalls}}
);
CREATE INDEX call_counts_to_forget ON call_counts (quarter_at);
-- Only on PostgreSQL: the latest changes of call_counts, which housekeeping adds up, because otherwise all dialers and cancels of a campaign
-- would wait for each other. engine/ended-calls.ts says who adds them.
CREATE TABLE call_count_changes (
  campaign_id {{id}} NOT NULL, quarter_at bigint NOT NULL, state text NOT NULL, calls bigint NOT NULL
);
-- Only on SQLite.
CREATE TRIGGER count_ended AFTER UPDATE OF state ON calls WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL BEGIN
  INSERT INTO call_counts (campaign_id, quarter_at, state, calls)
  VALUES (NEW.campaign_id, NEW.placed_at - NEW.placed_at % 900000, NEW.state, 1)
  ON CONFLICT DO UPDATE SET calls = calls + 1; END;
-- Only on SQLite: a late outcome replaces `unknown`.
CREATE TRIGGER count_replaced AFTER UPDATE OF state ON calls WHEN OLD.state = 'unknown' AND NEW.state <> 'unknown' BEGIN
  INSERT INTO call_counts (campaign_id, quarter_at, state, calls)
  VALUES (NEW.campaign_id, NEW.placed_at - NEW.placed_at % 900000, OLD.state, -1),
    (NEW.campaign_id, NEW.placed_at - NEW.placed_at % 900000, NEW.state, 1)
  ON CONFLICT DO UPDATE SET calls = calls + excluded.calls; END;
-- Only on SQLite: who answered replaces `completed`. Only outcomes update answered_by, so that cancels don't run this.
CREATE TRIGGER count_answered AFTER UPDATE OF answered_by ON calls WHEN NEW.state = 'completed' AND NEW.answered_by IS NOT NULL BEGIN
  INSERT INTO call_counts (campaign_id, quarter_at, state, calls)
  VALUES (NEW.campaign_id, NEW.placed_at - NEW.placed_at % 900000, 'completed', -1),
    (NEW.campaign_id, NEW.placed_at - NEW.placed_at % 900000, 'completed by ' || NEW.answered_by, 1)
  ON CONFLICT DO UPDATE SET calls = calls + excluded.calls; END;


-- AUDIT

-- detail: what was changed, or why. seq, hash: the event's place in the chain; null until housekeeping chains it: see audit/audit.ts.
CREATE TABLE audit_events (
  id {{id}} PRIMARY KEY, at bigint NOT NULL, actor_id {{id}}, actor_name text, action text NOT NULL,
  subject_kind text NOT NULL, subject_id {{id}} NOT NULL, subject_name text NOT NULL,
  account_id {{id}}, partner_id {{id}}, address text NOT NULL, detail text, seq bigint, hash text
);
CREATE UNIQUE INDEX audit_events_in_chain ON audit_events (seq) WHERE seq IS NOT NULL;
CREATE INDEX audit_events_unchained ON audit_events (id) WHERE seq IS NULL;
CREATE INDEX audit_events_of_backups ON audit_events (at) WHERE action = 'backup.created';
CREATE INDEX audit_events_of_api_key ON audit_events (subject_id, id) WHERE subject_kind = 'api-key';
-- One for each filter of the activity list, and for most pairs. They end with the ID, so that the newest matches are next to each other.
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

-- The newest event of the chain, and the newest one that was pruned: the hash of the oldest remaining event is based on its hash.
CREATE TABLE audit_chain (
  one integer PRIMARY KEY CHECK (one = 1), seq bigint NOT NULL, hash text NOT NULL,
  pruned_seq bigint NOT NULL, pruned_hash text NOT NULL
);
INSERT INTO audit_chain (one, seq, hash, pruned_seq, pruned_hash) VALUES (1, 0, '', 0, '');


-- THE SERVICE

-- The latest time from a clock that was right, so that a clock that's far ahead is noticed before it ends calls or erases data.
CREATE TABLE clock (one integer PRIMARY KEY CHECK (one = 1), newest_at bigint);
INSERT INTO clock (one, newest_at) VALUES (1, NULL);

-- RETENTION_DAYS and AUDIT_RETENTION_DAYS at the last start of a core, so that `admin` uses the same values. Null: data is kept.
CREATE TABLE recorded_retention (one integer PRIMARY KEY CHECK (one = 1), contact_days integer, audit_event_days integer);

-- Reports that a core's provider isn't accepting calls. Valid only while that core repeats them.
CREATE TABLE dialer_troubles (core text NOT NULL PRIMARY KEY, since bigint NOT NULL, reason text NOT NULL, noted_at bigint NOT NULL);
