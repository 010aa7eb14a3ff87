import { signal } from '@preact/signals';
import { DateTime } from 'luxon';

/** The time of the current minute. Changes every minute, and so at midnight, and when the user returns to the window. */
export const now = signal(DateTime.now());

/** The machine's own time zone, which can change on a journey while the console is running. */
export const ownZone = signal(readZone());

function readZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Reads the machine's time and zone. */
export function readClock(): void {
  now.value = DateTime.now();
  ownZone.value = readZone();
}

/** Builds a range of days in the user's time zone. Includes the zone only with a date, because earlier cores don't accept it alone. */
export function daysOf(from: string, to: string) {
  return { from, to, timeZone: from === '' && to === '' ? '' : ownZone.value };
}

const minuteMs = 60_000;

function tick(): void {
  setTimeout(
    () => {
      readClock();
      tick();
    },
    minuteMs - (Date.now() % minuteMs),
  );
}

/** Keeps the time up to date. The page calls it once. */
export function startClock(): void {
  tick();
  window.addEventListener('focus', readClock);
  document.addEventListener('visibilitychange', readClock);
}
