import { batch, signal } from '@preact/signals';
import type { RefObject } from 'preact';
import type { SessionView } from '#contract/console/session.ts';
import { type ScreenName, screens } from '../../screens.ts';

/** @property title the screen's heading */
export type ScreenProps = { session: SessionView; title: string };

const [home] = screens;

export const screen = signal<ScreenName>(home.name);

/** A dialog over a screen. The menu can open it, too. */
type DialogName = 'create-key' | 'which-key' | 'switch-tenancy' | 'switch-server' | 'change-password' | 'your-account' | 'palette' | 'help';
export const openDialog = signal<DialogName | null>(null);

/** The number of open dialogs. While one is open, nothing under it can be used. */
export const dialogCount = signal(0);

/** A key that the list scrolls to. A new object is a new request, even for the same key. */
export const requestedKey = signal<{ id: string } | null>(null);

/** The forms that contain unsent input. */
export const filledForms = new Set<RefObject<HTMLFormElement | null>>();

/** Whether a form with unsent input is in this dialog, or on the screen itself. */
export function hasInput(dialog: Element | null): boolean {
  return [...filledForms].some(({ current }) => current?.closest('dialog') === dialog);
}

/** What would discard the screen's unsent input. The shell asks first. */
export const leaving = signal<{ go: () => void; stay: () => void } | null>(null);

/** Leaves what the screen shows. If it contains unsent input, the user decides. */
export function leaveForms(go: () => void, stay: () => void = () => undefined): void {
  if (hasInput(null)) leaving.value = { go, stay };
  else go();
}

/** The number of calls of `showScreen`. */
export const arrivals = signal(0);

/** Shows a screen from its top, and moves the focus to its heading. */
export function showScreen(name: ScreenName): void {
  batch(() => {
    screen.value = name;
    arrivals.value += 1;
  });
}

/** Lets a screen reader announce the screen. */
export function startAtHeading(): void {
  scrollToTop();
  document.querySelector<HTMLElement>('main h1')?.focus();
}

/** Moves the focus to the heading if the element that had it is gone, so that it isn't lost when something else replaces a screen. */
export function recoverFocus(): void {
  if (document.activeElement === document.body) startAtHeading();
}

export function scrollToTop(): void {
  for (const part of document.querySelectorAll('.page, .list')) part.scrollTo({ top: 0 });
  document.querySelector('.shell')?.scrollTo({ top: 0 });
}

export function showKey(id: string): void {
  screen.value = 'api-keys';
  requestedKey.value = { id };
}

export function resetNavigation(): void {
  screen.value = home.name;
  openDialog.value = null;
  requestedKey.value = null;
  leaving.value = null;
}
