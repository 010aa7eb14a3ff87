import { signal } from '@preact/signals';
import type { SessionView } from '#contract/console.ts';
import { type ScreenName, screens } from '../../screens.ts';

/** @property title the screen's heading */
export type ScreenProps = { session: SessionView; title: string };

const [home] = screens;

/** The screen that the user chose last. */
export const screen = signal<ScreenName>(home.name);

/** A dialog over a screen. The menu opens it as well as the screen itself. */
type DialogName = 'create-key' | 'which-key' | 'switch-tenancy' | 'change-password';
export const openDialog = signal<DialogName | null>(null);

/** Shows a screen and moves the focus to its heading. */
export function showScreen(name: ScreenName): void {
  screen.value = name;
  requestAnimationFrame(() => document.querySelector<HTMLElement>('main h1')?.focus());
}

export function resetNavigation(): void {
  screen.value = home.name;
  openDialog.value = null;
}
