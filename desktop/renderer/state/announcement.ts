import { signal } from '@preact/signals';

/** The text that screen readers read and that is shown for a few seconds at the bottom of the window. */
export const announcement = signal('');

/** A text that only screen readers read, such as that details have opened. */
export const whisper = signal('');

const shownForMs = 6_000;
let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  clearTimeout(timer);
  announcement.value = text;
  timer = setTimeout(dismissAnnouncement, shownForMs);
}

export function dismissAnnouncement(): void {
  clearTimeout(timer);
  announcement.value = '';
}
