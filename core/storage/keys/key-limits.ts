import type { AuditEvent, KeyLimits } from '../../domain/model.ts';
import { recordAudit } from '../audit/audit.ts';
import type { Database, Dialect, Row } from '../engine/database.ts';

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

/** See `ApiKeyStore.limit`. */
export function limitKey(
  { write }: Database,
  id: string,
  before: string | null,
  after: KeyLimits | null,
  event: AuditEvent,
): Promise<boolean> {
  return write.transaction(async (trx) => {
    const key = await trx('api_keys').where({ id, limits_version: before }).forUpdate().first('calls_per_day');
    if (!key) return false;
    const columns = {
      limits_version: after?.version ?? null,
      addresses: after?.addresses ? JSON.stringify(after.addresses) : null,
      calls_per_day: after?.callsPerDay ?? null,
    };
    await trx('api_keys').where({ id }).update(columns);
    // The key may have had a limit earlier today.
    if (key.calls_per_day === null) await trx('api_key_days').where({ api_key_id: id }).delete();
    await recordAudit(trx, event);
    return true;
  });
}
