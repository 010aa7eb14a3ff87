import { signal } from '@preact/signals';
import { DateTime } from 'luxon';

/** The current minute's time: it changes when the minute does, so at midnight too, and when the user comes back to the window. */
export const now = signal(DateTime.now());

/** The machine's own time zone. It changes on a journey, while the console runs. */
export const ownZone = signal(readZone());

function readZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Reads the machine's time and zone. */
export function readClock(): void {
  now.value = DateTime.now();
  ownZone.value = readZone();
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

/** Keeps the time. The page calls it once. */
export function startClock(): void {
  tick();
  window.addEventListener('focus', readClock);
  document.addEventListener('visibilitychange', readClock);
}
