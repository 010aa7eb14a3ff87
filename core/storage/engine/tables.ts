import type { Tables } from 'knex/types/tables.js';
import type { CallState } from '#contract/calls/calls.ts';
import type { TenancyKind, UserType } from '#contract/console/common.ts';
import type { DoNotCallReason, DoNotCallSource } from '#contract/protection/do-not-call.ts';
import type { EndState, HandoffStage } from '../../domain/calls/call-states.ts';
import type { Millis } from '../../domain/instant.ts';
import type { AuditSubject } from '../../domain/model.ts';

/** The tables as the last migration leaves them. IDs are text. */
declare module 'knex/types/tables.js' {
  interface Tables {
    partners: PartnerRow;
    accounts: AccountRow;
    campaigns: CampaignRow;
    users: UserRow;
    api_keys: ApiKeyRow;
    revoked_api_keys: RevokedApiKeyRow;
    api_key_usage: KeyUsageRow;
    api_key_days: KeyDayRow;
    api_key_addresses: KeyAddressRow;
    sessions: SessionRow;
    oidc_links: LinkRow;
    sign_in_codes: SignInCodeRow;
    second_factors: SecondFactorRow;
    recovery_codes: RecoveryCodeRow;
    sign_in_attempts: ThrottleRow;
    audit_events: AuditEventRow;
    audit_chain: AuditChainRow;
    recorded_retention: RecordedRetentionRow;
    calls: CallRow;
    call_counts: CallCountRow;
    clock: ClockRow;
    dialer_troubles: DialerTroubleRow;
    do_not_call: DoNotCallRow;
    do_not_call_sweeps: DoNotCallSweepRow;
    do_not_call_additions: { partner_id: string; version: number; phones: string };
    protection_rules: ProtectionRulesRow;
  }
}

type NamedRow = { id: string; external_id: string | null; name: string; created_at: Millis };
/** `has_do_not_call` is 1 once the do-not-call list has had an entry. */
type PartnerRow = NamedRow & { has_do_not_call: number | null; do_not_call_version: number | null; rules_version: number | null };
/** `opt_outs_for_partner` is 1 if opt-outs during the account's calls apply to all of its partner's accounts. */
type AccountRow = NamedRow & { partner_id: string; has_do_not_call: number | null; opt_outs_for_partner: number | null };
type CampaignRow = NamedRow & { account_id: string };

/** The scope is the account or, if that's null, the partner. */
export type DoNotCallRow = {
  id: string;
  scope_id: string;
  phone: string;
  account_id: string | null;
  partner_id: string;
  reason: DoNotCallReason;
  note: string | null;
  source: DoNotCallSource;
  campaign_id: string | null;
  contact_id: string | null;
  created_by_id: string | null;
  created_by_name: string | null;
  created_at: Millis;
  ends_at: Millis | null;
};

/** A scope with new entries whose queued calls haven't been blocked yet. */
type DoNotCallSweepRow = { scope_id: string; account_id: string | null; partner_id: string; token: string };

/** The rules of one partner, account or campaign, as JSON. */
export type ProtectionRulesRow = {
  scope_id: string;
  partner_id: string;
  hours: string | null;
  countries: string | null;
  kinds: string | null;
  /** Not null if the hours have changed and the calls that the previous ones held aren't due yet. */
  hours_changed: string | null;
};

export type UserRow = {
  id: string;
  external_id: string | null;
  email: string;
  name: string;
  user_type: UserType;
  account_id: string | null;
  /** The user's partner. For an account user, it's the account's partner. */
  partner_id: string | null;
  password_hash: string;
  password_expires_at: Millis | null;
  /** 1 if someone handed the password out, or the one that the user replaced with it, so someone else may know it. */
  password_handed_out: number | null;
  /** The ID of the audit event of the last change of how the user signs in. */
  sign_in_version: string;
  created_at: Millis;
  last_sign_in_at: Millis | null;
  disabled_at: Millis | null;
  /** Set when the user is deleted, until the last key is revoked and the row is deleted. A user with this set is also disabled. */
  deleted_at: Millis | null;
  /** Set on a deleted user if the queued calls of their keys must be cancelled. */
  cancelling_since: Millis | null;
  /** The ID of the audit event of the last move. Set while some of the user's keys are still recorded with an earlier partner. */
  moving_keys: string | null;
};

export type ApiKeyRow = {
  id: string;
  digest: string;
  name: string;
  creator_id: string;
  /** The partner whose administrator can see the key. If the creator moves, it's changed in batches: see users/users.ts. */
  creator_partner_id: string | null;
  account_id: string | null;
  partner_id: string;
  created_at: Millis;
  expires_at: Millis | null;
  expiry_time_zone: string | null;
  last_used_at: Millis | null;
  /** The client's address in the last request that was recorded. */
  last_used_address: string | null;
  /** The creator's time zone. Null for keys from before it was recorded. */
  time_zone: string | null;
  /** Changes with each change of `addresses` and `calls_per_day`; null if both are. */
  limits_version: string | null;
  /** JSON: networks in CIDR notation. */
  addresses: string | null;
  calls_per_day: number | null;
};

/** The data about a revoked key that the list of calls shows. Its digest is deleted. */
type RevokedApiKeyRow = Pick<ApiKeyRow, 'id' | 'name' | 'creator_id' | 'creator_partner_id' | 'account_id' | 'partner_id'> & {
  creator_name: string;
  revoked_at: Millis;
  /** Set if the key's queued calls must be cancelled, until that's done. */
  cancelling_since: Millis | null;
};

/** A key's use in the quarter-hour that begins at `quarter_at`, and how many of its requests were refused because of their address. */
export type KeyUsageRow = { api_key_id: string; quarter_at: Millis; placed: number; cancelled: number; refused: number };

/** When a key was last used from an address. */
type KeyAddressRow = { api_key_id: string; address: string; used_at: Millis };

/** How many calls a key with a daily call limit placed on a day of its time zone (YYYY-MM-DD). */
type KeyDayRow = { api_key_id: string; day: string; placed: number };

/**
 * How many of the calls placed in the quarter-hour that begins at `quarter_at` have ended in `state`. On PostgreSQL, `call_count_changes`
 * has the latest changes.
 */
type CallCountRow = { campaign_id: string; quarter_at: Millis; state: EndState; calls: number };

export type SessionRow = {
  id: string;
  user_id: string;
  tenancy_kind: TenancyKind | null;
  tenancy_id: string | null;
  started_at: Millis;
  last_seen_at: Millis;
  /** The provider that the user signed in with; null for a password. */
  issuer: string | null;
  /** Set while the session waits for a code: until then, it can't be used for anything else. */
  half_open_until: Millis | null;
  /** 1 if the user was linked to the identity right before. */
  began_with_link: number | null;
};

export type LinkRow = { user_id: string; issuer: string; subject: string; linked_at: Millis };

/** A code that signs the app in, once. */
export type SignInCodeRow = {
  digest: string;
  user_id: string;
  issuer: string;
  subject: string;
  sign_in_version: string;
  challenge: string;
  expires_at: Millis;
};

/** A user's authenticator app. It takes effect once it's confirmed. */
export type SecondFactorRow = {
  user_id: string;
  /** Encrypted: see server/sealed-secrets.ts. */
  secret: string;
  confirmed_at: Millis | null;
  last_step: number | null;
};

type RecoveryCodeRow = { user_id: string; digest: string };

type ThrottleRow = { key: string; attempts: number; expires_at: Millis };

export type AuditEventRow = {
  id: string;
  at: Millis;
  actor_id: string | null;
  actor_name: string | null;
  action: string;
  subject_kind: AuditSubject['kind'];
  subject_id: string;
  subject_name: string;
  account_id: string | null;
  partner_id: string | null;
  address: string;
  detail: string | null;
  /** The event's number in the chain; null until it's chained. */
  seq?: number | null;
  hash?: string | null;
};

/** A report that a core's provider isn't accepting calls. Valid only while that core repeats it. */
type DialerTroubleRow = { core: string; since: Millis; reason: string; noted_at: Millis };

/** A single row. */
type AuditChainRow = { one: 1; seq: number; hash: string; pruned_seq: number; pruned_hash: string };

/** A single row, which the first core that starts adds. Null means that data is kept. */
type RecordedRetentionRow = { one: 1; contact_days: number | null; audit_event_days: number | null };
/** A single row. */
type ClockRow = { one: 1; newest_at: Millis | null };

/**
 * domain/calls/call-states.ts explains state, handoff and due_at. If a call was erased, phone, name, time_zone, variables and detail are
 * null.
 */
export type CallRow = {
  contact_id: string;
  campaign_id: string;
  account_id: string;
  request_id: string;
  api_key_id: string;
  state: CallState;
  phone: string | null;
  name: string | null;
  time_zone: string | null;
  /** JSON: pairs of name and value, sorted by name. */
  variables: string | null;
  not_before: Millis | null;
  not_after: Millis | null;
  placed_at: Millis;
  cancelled_at: Millis | null;
  due_at: Millis | null;
  attempt: number;
  first_attempt_at: Millis | null;
  handoff: HandoffStage | null;
  provider: string | null;
  dialed_at: Millis | null;
  ended_at: Millis | null;
  duration_seconds: number | null;
  detail: string | null;
  /** When the provider reported the outcome of a call that had been `unknown`. */
  late_outcome_at: Millis | null;
  /** When calling hours allow the call; null if it isn't waiting for that. */
  held_until: Millis | null;
  /** The `heldUntil` in the response to the placed call. */
  response_held_until: Millis | null;
};

/** All tables that the types define. A restore on PostgreSQL wouldn't drop a table that's missing here. */
const typedTables: Record<keyof Tables, true> = {
  partners: true,
  accounts: true,
  campaigns: true,
  users: true,
  api_keys: true,
  revoked_api_keys: true,
  api_key_addresses: true,
  api_key_days: true,
  api_key_usage: true,
  sessions: true,
  oidc_links: true,
  sign_in_codes: true,
  second_factors: true,
  recovery_codes: true,
  sign_in_attempts: true,
  audit_events: true,
  audit_chain: true,
  clock: true,
  recorded_retention: true,
  calls: true,
  call_counts: true,
  dialer_troubles: true,
  do_not_call: true,
  do_not_call_sweeps: true,
  do_not_call_additions: true,
  protection_rules: true,
};

export const migrationsTable = 'schema_migrations';

/** All tables that the migrations create on PostgreSQL. A schema may also contain other programs' tables. */
export const ownTables: readonly string[] = [...Object.keys(typedTables), 'call_count_changes', migrationsTable];
