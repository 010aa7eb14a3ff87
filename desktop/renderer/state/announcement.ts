import { signal } from '@preact/signals';

/** The text that screen readers read and that is shown for a few seconds at the bottom of the window. */
export const announcement = signal('');

/** A text that only screen readers read, such as that details have opened. */
export const whisper = signal('');

/** Says that something failed that no form shows, such as saving a file. It stays until the user closes it. */
export const warning = signal('');

const shownForMs = 6_000;
let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  clearTimeout(timer);
  announcement.value = text;
  timer = setTimeout(() => {
    announcement.value = '';
  }, shownForMs);
}

export function warn(text: string): void {
  dismissAnnouncement();
  warning.value = text;
}

export function dismissAnnouncement(): void {
  clearTimeout(timer);
  announcement.value = '';
  warning.value = '';
}
