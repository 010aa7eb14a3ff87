import type { Tables } from 'knex/types/tables.js';
import type { CallState } from '#contract/calls/calls.ts';
import type { AnsweredBy } from '#contract/calls/dialer.ts';
import type { TenancyKind, UserType } from '#contract/console/common.ts';
import type { HeldFor, StopScope } from '#contract/protection/dialing.ts';
import type { DoNotCallReason, DoNotCallSource } from '#contract/protection/do-not-call.ts';
import type { EndState, HandoffStage } from '../../domain/calls/call-states.ts';
import type { Millis } from '../../domain/instant.ts';
import type { AuditSubject } from '../../domain/model.ts';

/** The tables as the last migration leaves them. schema.sql explains their columns. */
declare module 'knex/types/tables.js' {
  interface Tables {
    partners: PartnerRow;
    accounts: NamedRow & { partner_id: string; has_do_not_call: number | null; opt_outs_for_partner: number | null };
    campaigns: CampaignRow;
    users: UserRow;
    api_keys: ApiKeyRow;
    revoked_api_keys: RevokedApiKeyRow;
    api_key_usage: KeyUsageRow;
    api_key_days: { api_key_id: string; day: string; placed: number };
    api_key_addresses: { api_key_id: string; address: string; used_at: Millis };
    sessions: SessionRow;
    oidc_links: LinkRow;
    sign_in_codes: SignInCodeRow;
    second_factors: SecondFactorRow;
    recovery_codes: { user_id: string; digest: string };
    sign_in_attempts: { key: string; attempts: number; expires_at: Millis };
    audit_events: AuditEventRow;
    audit_chain: { one: 1; seq: number; hash: string; pruned_seq: number; pruned_hash: string };
    recorded_retention: { one: 1; contact_days: number | null; audit_event_days: number | null };
    calls: CallRow;
    call_counts: { campaign_id: string; quarter_at: Millis; state: EndState | `completed by ${AnsweredBy}`; calls: number };
    clock: { one: 1; newest_at: Millis | null };
    dialer_troubles: { core: string; since: Millis; reason: string; noted_at: Millis };
    do_not_call: DoNotCallRow;
    do_not_call_sweeps: DoNotCallSweepRow;
    do_not_call_additions: { partner_id: string; version: number; phones: string };
    protection_rules: ProtectionRulesRow;
    dialing_stops: DialingStopRow;
    dialing_paces: { scope_id: string; next_at: Millis; spread_until: Millis };
  }
}

type NamedRow = { id: string; external_id: string | null; name: string; created_at: Millis };
type PartnerRow = NamedRow & { has_do_not_call: number | null; do_not_call_version: number | null; rules_version: number | null };
/** `settings` is a JSON object. */
type CampaignRow = NamedRow & { account_id: string; settings: string | null };

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

export type DoNotCallSweepRow = { scope_id: string; account_id: string | null; partner_id: string; token: string };

export type ProtectionRulesRow = {
  scope_id: string;
  partner_id: string;
  hours: string | null;
  countries: string | null;
  kinds: string | null;
  pace: string | null;
  contact_limits: string | null;
  changed: string | null;
};

export type DialingStopRow = {
  id: string;
  scope: StopScope;
  scope_id: string;
  account_id: string | null;
  partner_id: string | null;
  at: Millis;
  by_id: string | null;
  by_name: string | null;
  by_type: UserType | 'operator';
  reason: string | null;
  cancelling_since: Millis | null;
};

export type UserRow = {
  id: string;
  external_id: string | null;
  email: string;
  name: string;
  user_type: UserType;
  account_id: string | null;
  partner_id: string | null;
  password_hash: string;
  password_expires_at: Millis | null;
  password_handed_out: number | null;
  sign_in_version: string;
  created_at: Millis;
  last_sign_in_at: Millis | null;
  disabled_at: Millis | null;
  deleted_at: Millis | null;
  cancelling_since: Millis | null;
  moving_keys: string | null;
};

export type ApiKeyRow = {
  id: string;
  digest: string;
  name: string;
  creator_id: string;
  creator_partner_id: string | null;
  account_id: string | null;
  partner_id: string;
  created_at: Millis;
  expires_at: Millis | null;
  expiry_time_zone: string | null;
  last_used_at: Millis | null;
  last_used_address: string | null;
  time_zone: string | null;
  limits_version: string | null;
  addresses: string | null;
  calls_per_day: number | null;
  calls_counted_from: Millis | null;
};

type RevokedApiKeyRow = Pick<ApiKeyRow, 'id' | 'name' | 'creator_id' | 'creator_partner_id' | 'account_id' | 'partner_id'> & {
  creator_name: string;
  revoked_at: Millis;
  cancelling_since: Millis | null;
};

export type KeyUsageRow = { api_key_id: string; quarter_at: Millis; placed: number; cancelled: number; refused: number };

export type SessionRow = {
  id: string;
  user_id: string;
  tenancy_kind: TenancyKind | null;
  tenancy_id: string | null;
  started_at: Millis;
  last_seen_at: Millis;
  issuer: string | null;
  half_open_until: Millis | null;
  began_with_link: number | null;
};

export type LinkRow = { user_id: string; issuer: string; subject: string; linked_at: Millis };

export type SignInCodeRow = {
  digest: string;
  user_id: string;
  issuer: string;
  subject: string;
  sign_in_version: string;
  challenge: string;
  expires_at: Millis;
};

export type SecondFactorRow = {
  user_id: string;
  secret: string;
  confirmed_at: Millis | null;
  last_step: number | null;
};

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
  seq?: number | null;
  hash?: string | null;
};

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
  late_outcome_at: Millis | null;
  held_until: Millis | null;
  held_for: HeldFor | null;
  response_held_until: Millis | null;
  answered_by: AnsweredBy | null;
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
  dialing_stops: true,
  dialing_paces: true,
};

export const migrationsTable = 'schema_migrations';

/** All tables that the migrations create on PostgreSQL. A schema may also contain other programs' tables. */
export const ownTables: readonly string[] = [...Object.keys(typedTables), 'call_count_changes', migrationsTable];
