import { DateTime } from 'luxon';
import { dayText, exactText, fromNow, now, ownZone } from '../state/times.ts';

/** An instant, as its distance from now; on hover and focus exactly, with its zone. */
export function Time({ at }: { at: string }) {
  const instant = DateTime.fromISO(at, { zone: ownZone });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: The exact time has to be within reach of the keyboard.
    <time dateTime={at} tabIndex={0} data-tip={exactText(instant)}>
      {fromNow(instant, now.value)}
    </time>
  );
}

/** A day on which something ends, in the zone in which it was chosen; on hover and focus exactly, in that zone and in one's own. */
export function EndDay({ at, zone }: { at: string; zone: string | null }) {
  const there = DateTime.fromISO(at, { zone: zone ?? ownZone });
  const instant = there.isValid ? there : DateTime.fromISO(at, { zone: ownZone });
  const here = instant.setZone(ownZone);
  const tip = instant.zoneName === here.zoneName ? exactText(instant) : `${exactText(instant)} (${exactText(here)})`;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: The exact time has to be within reach of the keyboard.
    <time dateTime={at} tabIndex={0} data-tip={`${tip}, ${fromNow(instant, now.value)}`}>
      {dayText(instant)}
    </time>
  );
}
