/**
 * Returns the value of a column that can be null according to the schema, but never is in these rows. A default would hide a broken row.
 */
export function required<Value>(value: Value | null, column: string): Value {
  if (value === null) throw new Error(`A database row is missing ${column}.`);
  return value;
}
