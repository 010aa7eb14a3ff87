import { DateTime } from 'luxon';

/** Tables hold instants as epoch milliseconds. */
export function instant(millis: number): DateTime<true> {
  const at = DateTime.fromMillis(millis, { zone: 'utc' });
  if (!at.isValid) throw new RangeError(`${millis} is no instant.`);
  return at;
}

export function instantOrNull(millis: number | null): DateTime<true> | null {
  return millis === null ? null : instant(millis);
}
