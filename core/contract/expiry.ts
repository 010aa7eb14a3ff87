import { z } from 'zod';
import { endOfDay, localDay, plusDays } from './calendar.ts';
import { limits } from './limits.ts';

/** The expiry that a key's creator chose. The core computes the exact time from it. */
export const expirationSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('none') }),
  z.strictObject({ kind: z.literal('years'), years: z.literal([1, 2, 3, 4, 5], { error: 'Must be a whole number from 1 to 5.' }) }),
  z.strictObject({ kind: z.literal('custom'), date: z.iso.date({ error: 'Must be a date in the format YYYY-MM-DD.' }) }),
]);
export type Expiration = z.infer<typeof expirationSchema>;

/** A DateTime, a Date, or milliseconds since 1970. */
type Instant = { valueOf(): number };

/** Calendar days in the format YYYY-MM-DD, both included. */
type DayRange = { earliest: string; latest: string };

/** From tomorrow to one day before five years from today, in that time zone. */
export function customRange(now: Instant, timeZone: string): DayRange {
  const today = localDay(now.valueOf(), timeZone);
  return { earliest: plusDays(today, 1), latest: latestDay(today) };
}

/**
 * Returns the instant at which a key stops working: the end of its last day. `keyIsActive` in core/storage/keys/authorization.ts enforces
 * it, and the console shows it before the key is created.
 *
 * @param choice a custom date must be within {@link customRange}
 * @returns null for a key that doesn't expire
 */
export function expiryInstant(choice: Expiration, now: Instant, timeZone: string): number | null {
  if (choice.kind === 'none') return null;
  if (choice.kind === 'custom') return endOfDay(choice.date, timeZone);
  const today = localDay(now.valueOf(), timeZone);
  return endOfDay(choice.years === 5 ? latestDay(today) : plusDays(today, 0, choice.years), timeZone);
}

export function isWithin(day: string, range: DayRange): boolean {
  return range.earliest <= day && day <= range.latest;
}

/** Whether a key has expired. It's accepted up to and including its expiry instant. */
export function isExpired(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && now > expiresAt;
}

export function expiresSoon(expiresAt: number | null, now: number): expiresAt is number {
  return expiresAt !== null && expiresAt - now <= limits.expiresSoonDays * 86_400_000;
}

function latestDay(today: string): string {
  return plusDays(today, -1, 5);
}
