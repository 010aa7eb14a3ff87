/** What a screen showed and what the user set there, such as its search and its sort. It lasts until the user signs out. */
const remembered = new Map<string, unknown>();

/**
 * A value that outlives its component.
 *
 * @param key belongs to one type of value
 */
export function remember<Value>(key: string, make: () => Value): Value {
  if (!remembered.has(key)) remembered.set(key, make());
  return remembered.get(key) as Value;
}

/** @param prefix of the keys that are forgotten */
export function forgetViews(prefix: string): void {
  for (const key of remembered.keys()) if (key.startsWith(prefix)) remembered.delete(key);
}
