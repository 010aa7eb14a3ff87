import type { Tables } from 'knex/types/tables.js';
import { migrationsTable } from '../../migrate.ts';

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

/** All tables that the migrations create on PostgreSQL. A schema may also contain other programs' tables. */
export const ownTables: readonly string[] = [...Object.keys(typedTables), 'call_count_changes', migrationsTable];
