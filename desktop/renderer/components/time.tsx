import { DateTime } from 'luxon';
import { now } from '../state/clock.ts';
import { formatDay, formatInstant, formatRelative, ownZone } from '../state/format-time.ts';

/** Beyond this many days, a date says more than a distance. */
const nearDays = 30;

/** A relative time, or the day if it is far away. Hover and focus show the exact instant with its zone. */
export function Time({ at }: { at: string }) {
  const instant = DateTime.fromISO(at, { zone: ownZone });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: Keyboard users must be able to read the exact time.
    <time dateTime={at} tabIndex={0} data-tip={formatInstant(instant)}>
      {isNear(instant) ? formatRelative(instant, now.value) : formatDay(instant)}
    </time>
  );
}

function isNear(instant: DateTime): boolean {
  return Math.abs(instant.diff(now.value).as('days')) < nearDays;
}

/** The day on which a key ends, in the zone it was chosen in. Hover and focus show the exact instant in that zone and in the machine's own. */
export function EndDay({ at, zone }: { at: string; zone: string | null }) {
  const there = DateTime.fromISO(at, { zone: zone ?? ownZone });
  const instant = there.isValid ? there : DateTime.fromISO(at, { zone: ownZone });
  const here = instant.setZone(ownZone);
  const tip = instant.zoneName === here.zoneName ? formatInstant(instant) : `${formatInstant(instant)} (${formatInstant(here)})`;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: Keyboard users must be able to read the exact time.
    <time dateTime={at} tabIndex={0} data-tip={`${tip}, ${formatRelative(instant, now.value)}`}>
      {formatDay(instant)}
    </time>
  );
}
