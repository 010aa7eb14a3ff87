import { DateTime } from 'luxon';

/** Tables store times as epoch milliseconds. */
export function instant(millis: number): DateTime<true> {
  const at = DateTime.fromMillis(millis, { zone: 'utc' });
  if (!at.isValid) throw new RangeError(`${millis} isn't a valid timestamp.`);
  return at;
}

export function instantOrNull(millis: number | null): DateTime<true> | null {
  return millis === null ? null : instant(millis);
}

/** For a column that the schema allows to be null, but that never is in these rows. A default would hide a broken row. */
export function required<Value>(value: Value | null, column: string): Value {
  if (value === null) throw new Error(`A database row is missing ${column}.`);
  return value;
}
