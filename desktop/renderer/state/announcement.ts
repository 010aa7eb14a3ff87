import { signal } from '@preact/signals';

/** What a screen reader is told, and what shows for a few seconds at the foot of the window. */
export const announcement = signal('');

const shownForMs = 6_000;
let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  clearTimeout(timer);
  announcement.value = text;
  timer = setTimeout(() => {
    announcement.value = '';
  }, shownForMs);
}
