import { effect, signal } from '@preact/signals';

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
export type Theme = (typeof themes)[number];
export const theme = signal<Theme>(themes.find((name) => name === readPreference('theme')) ?? 'system');

/** Keeps the page in the chosen theme. The page calls it once. */
export function followTheme(): void {
  effect(() => {
    document.documentElement.dataset['theme'] = theme.value;
    if (theme.value !== (readPreference('theme') || 'system')) writePreference('theme', theme.value);
  });
}
