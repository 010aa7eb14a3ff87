import type { KeyLimits } from '../../domain/model.ts';
import type { Dialect, Row } from '../engine/database.ts';

/**
 * The only code that decides what a key may do, except that `domain/api-keys.ts` compares addresses, and `calls/place-with-limit` counts the
 * day's calls. `explain` in `calls/place-and-cancel.ts` says which refusal wins. It's in SQL, so that the statement that places or cancels a
 * call checks it: if a key was revoked, or its creator was deleted or moved, before the statement started, this takes effect in every
 * process. No cache is involved.
 *
 * `r` is a request or group of the batch (`digest`, `campaign_id`, `at`, `limits_version`), `k` its key, `u` the key's creator as they are
 * now, `c` the campaign, and `a` the campaign's account. `at` is the time at which this process's domain handles the request, by its own
 * clock. A revoked key is refused because it no longer has a row in `api_keys`.
 */

/** SQL: the key hasn't expired, and its creator isn't disabled. */
const keyIsActive = `((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL)`;

/**
 * SQL: the key has access to the campaign. An account user's key has access to the account's campaigns. A partner user's key has access to
 * the campaigns of all the partner's accounts, even if the user is limited to one account. A staff user's key has access to the campaigns
 * of the tenancy in which it was created.
 */
const keyHasAccess = `(CASE u.user_type
  WHEN 'account' THEN c.account_id = u.account_id
  WHEN 'partner' THEN a.partner_id = u.partner_id
  WHEN 'staff' THEN CASE WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id ELSE a.partner_id = k.partner_id END
END)`;

/**
 * SQL: the process has checked the request against the key's current limits. The address is checked before the statement, because SQLite
 * can't compare networks. If the limits have changed since then, the statement changes nothing, and the request is checked again.
 */
const limitsAreCurrent = 'k.limits_version IS NOT DISTINCT FROM r.limits_version';

/** The parts of the statements in `calls/` that decide. */
export const authorization = { isAllowed: `${keyIsActive} AND ${keyHasAccess} AND ${limitsAreCurrent}`, keyIsActive, keyHasAccess };

/** SQL: the key with the digest of `r`. calls/place.postgres.sql says why. */
export const keyByDigest: Readonly<Record<Dialect, string>> = {
  sqlite: 'api_keys k',
  postgres: 'LATERAL (SELECT * FROM api_keys WHERE digest = r.digest LIMIT 1) k',
};

/** SQL for display, by the same rule: the account whose campaigns the key has access to; null for all accounts of `reachedPartner`. */
export const reachedAccount = `CASE u.user_type WHEN 'account' THEN u.account_id WHEN 'staff' THEN k.account_id END`;
export const reachedPartner = `CASE u.user_type WHEN 'staff' THEN k.partner_id ELSE u.partner_id END`;

/** SQL: the version and the limits of a key named `k`. There are only two columns, because each column takes time in every row. */
export function limitColumns(kind: Dialect): string {
  const columns = ['addresses', 'calls_per_day', 'time_zone', 'expiry_time_zone'].map((column) => `'${column}', k.${column}`).join(', ');
  const json = { sqlite: `json_object(${columns})`, postgres: `json_build_object(${columns})::text` }[kind];
  return `k.limits_version, CASE WHEN k.limits_version IS NOT NULL THEN ${json} END AS limits`;
}

/** Returns a key's time zone. Keys that don't expire, and were created before time zones were recorded, don't have their own. */
export function effectiveTimeZone(row: { time_zone: unknown; expiry_time_zone: unknown }): string {
  return String(row.time_zone ?? row.expiry_time_zone ?? 'UTC');
}

/** Remembers limits by version, so that each version is read and parsed only once. */
export function knownLimits() {
  const known = new Map<string, KeyLimits>();
  return {
    /** @returns undefined if the limits of this version have to be read first */
    get: (version: Row[string] | undefined): KeyLimits | null | undefined => (typeof version === 'string' ? known.get(version) : null),
    /** Returns the limits in a row with {@link limitColumns}: the same object for the same version. */
    read({ limits_version: version, limits: json }: Row): KeyLimits | null {
      if (typeof version !== 'string') return null;
      const seen = known.get(version);
      if (seen) return seen;
      const limits = parseLimits(version, JSON.parse(String(json)));
      if (known.size >= maxKnown) known.clear();
      known.set(version, limits);
      return limits;
    },
  };
}

export type KnownLimits = ReturnType<typeof knownLimits>;

const maxKnown = 10_000;

export function parseLimits(version: string, row: Row): KeyLimits {
  const { addresses, calls_per_day: callsPerDay, time_zone, expiry_time_zone } = row;
  return {
    version,
    addresses: typeof addresses === 'string' ? JSON.parse(addresses) : null,
    callsPerDay: callsPerDay == null ? null : Number(callsPerDay),
    timeZone: effectiveTimeZone({ time_zone, expiry_time_zone }),
  };
}
