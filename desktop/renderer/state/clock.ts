import { computed, signal } from '@preact/signals';
import { DateTime } from 'luxon';
import { limits } from '#contract/limits.ts';
import { findTimeZone } from '#contract/time-zones.ts';

const machineNow = signal(DateTime.utc());

/** How many milliseconds the machine's clock is ahead of the server's; 0 if they differ by less than two minutes. */
export const clockLead = signal(0);

/** The server's time, because the server decides when keys expire. Updated every minute, and when the user returns to the window. */
export const now = computed(() => machineNow.value.minus(clockLead.value));

const toleranceMs = 120_000;

export async function readServerClock(): Promise<void> {
  const lead = (await window.callkey.readClockLead()) ?? 0;
  clockLead.value = Math.abs(lead) < toleranceMs ? 0 : lead;
}

/** A time zone that the core has refused, because its database of zones is older. */
let refusedZone: string | null = null;

/** The machine's own time zone, which changes if the user travels while the console is running. UTC if it isn't known. */
export const ownZone = signal(readZone() ?? 'UTC');

/** Whether the machine has a time zone that the core knows. */
export const hasOwnZone = signal(readZone() !== null);

/** Returns what the platform reports, unless that isn't a zone: it may be `Etc/Unknown`, or nothing at all. */
function readZone(): string | null {
  const reported: unknown = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zone = typeof reported === 'string' ? findTimeZone(reported) : null;
  return zone === refusedZone ? null : zone;
}

/** Uses UTC from now on, because the core doesn't know the machine's zone. */
export function refuseOwnZone(): void {
  if (hasOwnZone.peek()) refusedZone = ownZone.peek();
  readClock();
}

export function readClock(): void {
  machineNow.value = DateTime.utc();
  ownZone.value = readZone() ?? 'UTC';
  hasOwnZone.value = readZone() !== null;
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
