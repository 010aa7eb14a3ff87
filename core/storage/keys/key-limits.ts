import type { Knex } from 'knex';
import type { Millis } from '../../domain/instant.ts';
import type { AuditEvent, KeyLimits } from '../../domain/model.ts';
import { recordAudit } from '../audit/audit.ts';
import type { Row } from '../engine/database.ts';

/** The columns of a key that hold its limits, from keys named `k`. */
export const limitColumns = ['limits_version', 'addresses', 'calls_per_day', 'time_zone', 'expiry_time_zone'] as const;

/** Keys that were created before this was recorded, and don't expire, have no time zone of their own. */
export function effectiveTimeZone(row: { time_zone: unknown; expiry_time_zone: unknown }): string {
  return String(row.time_zone ?? row.expiry_time_zone ?? 'UTC');
}

/**
 * Returns a function that reads the limits from a row. It returns the same object for the same version, so that each version is parsed only
 * once, and a refusal because of the address takes no longer than the lookup of an unknown key.
 */
export function limitsReader(): (row: Row) => KeyLimits | null {
  const known = new Map<string, KeyLimits>();
  return (row) => {
    const version = row['limits_version'];
    if (typeof version !== 'string') return null;
    const limits = known.get(version) ?? parseLimits(version, row);
    if (known.size >= mostKnown) known.clear();
    known.set(version, limits);
    return limits;
  };
}

const mostKnown = 10_000;

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
  write: Knex,
  id: string,
  before: string | null,
  after: KeyLimits | null,
  today: { day: string; from: Millis },
  event: AuditEvent,
): Promise<boolean> {
  return write.transaction(async (trx) => {
    const key = await trx('api_keys').where({ id, limits_version: before }).forUpdate().first('calls_per_day');
    if (key === undefined) return false;
    await trx('api_keys')
      .where({ id })
      .update({
        limits_version: after?.version ?? null,
        addresses: after?.addresses ? JSON.stringify(after.addresses) : null,
        calls_per_day: after?.callsPerDay ?? null,
      });
    if (key.calls_per_day === null && after?.callsPerDay != null) await startCounting(trx, id, today);
    await recordAudit(trx, event);
    return true;
  });
}

/** Counts the calls that a key has placed since the day began. While it had no limit, only its usage was counted. */
async function startCounting(trx: Knex.Transaction, id: string, { day, from }: { day: string; from: Millis }): Promise<void> {
  const used = await trx('api_key_usage').where({ api_key_id: id }).where('quarter_at', '>=', from).sum({ placed: 'placed' }).first();
  const counted = await trx('api_key_days').where({ api_key_id: id, day }).first('placed');
  const placed = Math.max(Number(used?.placed ?? 0), counted?.placed ?? 0);
  await trx('api_key_days').insert({ api_key_id: id, day, placed }).onConflict(['api_key_id', 'day']).merge(['placed']);
}
