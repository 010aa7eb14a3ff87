import { effect, signal } from '@preact/signals';

/** The lists that each screen last showed, and the user's filters on it, such as search and sort order. Kept until the user signs out. */
const remembered = new Map<string, unknown>();

/** Returns a value that outlives its component. @param key must always be used for the same type of value */
export function remember<Value>(key: string, make: () => Value): Value {
  if (!remembered.has(key)) remembered.set(key, make());
  return remembered.get(key) as Value;
}

/** @param prefix the start of the keys to forget */
export function forgetAll(prefix: string): void {
  for (const key of remembered.keys()) if (key.startsWith(prefix)) remembered.delete(key);
}

// What the user chose on this computer, for every server and account. None of it is secret.

const prefix = 'callkey.';

/** @returns empty if nothing was chosen, or the browser doesn't store anything */
export function readPreference(name: string): string {
  try {
    return localStorage.getItem(prefix + name) ?? '';
  } catch {
    return '';
  }
}

export function writePreference(name: string, value: string): void {
  try {
    localStorage.setItem(prefix + name, value);
  } catch {
    // If the browser doesn't store anything, the choice lasts until the page is closed.
  }
}

export const themes = ['system', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];
export const theme = signal<Theme>(themes.find((name) => name === readPreference('theme')) ?? 'system');

/** Keeps the page in the chosen theme. The page calls it once. */
export function followTheme(): void {
  effect(() => {
    document.documentElement.style.colorScheme = theme.value === 'system' ? '' : theme.value;
    if (theme.value !== (readPreference('theme') || 'system')) writePreference('theme', theme.value);
  });
}
