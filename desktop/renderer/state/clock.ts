import { computed, signal } from '@preact/signals';
import { DateTime } from 'luxon';
import { limits } from '#contract/limits.ts';

const machineNow = signal(DateTime.now());

/** How many milliseconds the machine's clock is ahead of the server's; 0 if they differ by less than two minutes. */
export const clockLead = signal(0);

/**
 * The server's time, because the server decides when keys expire. Updated every minute, and so at midnight, and when the user returns to
 * the window.
 */
export const now = computed(() => machineNow.value.minus(clockLead.value));

const toleranceMs = 120_000;

/** Updates `clockLead` from the server's latest response. Ignores small differences. */
export async function readServerClock(): Promise<void> {
  const lead = (await window.callkey.readClockLead()) ?? 0;
  clockLead.value = Math.abs(lead) < toleranceMs ? 0 : lead;
}

/** The machine's own time zone, which changes if the user travels while the console is running. */
export const ownZone = signal(readZone());

function readZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Reads the time and the machine's zone. */
export function readClock(): void {
  machineNow.value = DateTime.now();
  ownZone.value = readZone();
  void readServerClock();
}

/** Returns the first day of a chart of the last 30 days, in the user's time zone. */
export function firstChartDay(): string {
  return now.value
    .setZone(ownZone.value)
    .minus({ days: limits.chartDays - 1 })
    .toFormat('yyyy-MM-dd');
}

/** Builds a range of days in the user's time zone. Without a date, the zone doesn't matter. */
export function listDays(from: string, to: string) {
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
