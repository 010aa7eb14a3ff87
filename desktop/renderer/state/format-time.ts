import type { DateTime } from 'luxon';

/** The machine's own time zone. */
export const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' });
const unitSeconds: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['minute', 60],
  ['hour', 3_600],
  ['day', 86_400],
];

/** The distance in whole units of the largest one that fits, up to days: "3 days ago", "in 71 days". */
export function formatRelative(instant: DateTime, from: DateTime): string {
  const seconds = instant.diff(from).as('seconds');
  // The core's clock may run a little ahead of this one, which ticks once a second.
  if (seconds > -45 && seconds < 15) return 'just now';
  if (seconds < 45 && seconds > 0) return 'in a moment';
  const [unit, size] = unitSeconds.findLast(([, size]) => Math.abs(seconds) >= size) ?? ['minute', 60];
  return relative.format(Math.trunc(seconds / size) || Math.sign(seconds), unit);
}

/** A calendar day: "31 Jan 2027". */
export function formatDay(instant: DateTime): string {
  return instant.setLocale('en-GB').toFormat('d LLL yyyy');
}

/** To the second, with the zone's name: "31 Jan 2027, 23:59:59 Europe/Berlin". */
export function formatInstant(instant: DateTime): string {
  return `${instant.setLocale('en-GB').toFormat('d LLL yyyy, HH:mm:ss')} ${instant.zoneName}`;
}
