import { computed, signal } from '@preact/signals';
import { DateTime } from 'luxon';

/** The time, to the tick. What is shown of time follows it. */
export const now = signal(DateTime.now());

const tickMs = 1_000;
setInterval(() => {
  now.value = DateTime.now();
}, tickMs);

const minuteMs = computed(() => now.value.startOf('minute').toMillis());

/** The minute that it is, for what changes with minutes or days and costs too much to do with every tick. It is there at midnight. */
export const minute = computed(() => DateTime.fromMillis(minuteMs.value));

/** The machine's own zone. */
export const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' });
const steps: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['minute', 60],
  ['hour', 3_600],
  ['day', 86_400],
];

/** How long ago or ahead, in whole ones of the largest unit that fits, up to days: "3 days ago", "in 71 days". */
export function fromNow(instant: DateTime, from: DateTime): string {
  const seconds = instant.diff(from).as('seconds');
  // What has just happened may lie a little ahead: the two clocks are not one, and the one here ticks.
  if (seconds > -45 && seconds < 15) return 'just now';
  if (seconds < 45 && seconds > 0) return 'in a moment';
  const [unit, size] = steps.findLast(([, size]) => Math.abs(seconds) >= size) ?? ['minute', 60];
  return relative.format(Math.trunc(seconds / size) || Math.sign(seconds), unit);
}

/** A calendar day: "31 Jan 2027". */
export function dayText(instant: DateTime): string {
  return instant.setLocale('en-GB').toFormat('d LLL yyyy');
}

/** To the second, with the zone's name: "31 Jan 2027, 23:59:59 Europe/Berlin". */
export function exactText(instant: DateTime): string {
  return `${instant.setLocale('en-GB').toFormat('d LLL yyyy, HH:mm:ss')} ${instant.zoneName}`;
}
