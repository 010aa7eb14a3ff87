import { type Signal, signal } from '@preact/signals';

/** The data that each screen last showed, and the user's settings on it, such as search and sort order. Kept until the user signs out. */
const remembered = new Map<string, unknown>();

/**
 * Returns a value that outlives its component.
 *
 * @param key must always be used for the same type of value
 */
export function remember<Value>(key: string, make: () => Value): Value {
  if (!remembered.has(key)) remembered.set(key, make());
  return remembered.get(key) as Value;
}

/** Returns the user's settings on a screen, in an account or partner. */
export function viewSignal<View extends object>(tenancyKey: string, name: string, initial: View): Signal<View> {
  return remember(`${tenancyKey}/view/${name}`, () => signal(initial));
}

/** @param prefix the start of the keys to forget */
export function forgetViews(prefix: string): void {
  for (const key of remembered.keys()) if (key.startsWith(prefix)) remembered.delete(key);
}
