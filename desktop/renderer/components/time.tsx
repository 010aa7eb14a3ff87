import { DateTime } from 'luxon';
import { now, ownZone } from '../state/clock.ts';
import { formatDay, formatInstant, formatMinute, formatRelative } from '../state/format.ts';

/** Beyond 30 days, a date is more useful than a relative time. */
const nearMs = 30 * 86_400_000;

type TimeProps = { at: string; text: string; tip: string; isInTable?: boolean };

function TimeWithTip({ at, text, tip, isInTable = false }: TimeProps) {
  return (
    // In a table, the arrow keys move the focus here, because a table is a single tab stop.
    <time dateTime={at} tabIndex={isInTable ? -1 : 0} data-tip={tip}>
      {text}
    </time>
  );
}

function inOwnZone(at: string): DateTime {
  return DateTime.fromISO(at, { zone: ownZone.value });
}

function formatExact(instant: DateTime): string {
  return `${formatInstant(instant)}, ${formatRelative(instant, now.value)}`;
}

/** Shows a relative time, or the day if it's far away. Hover and focus show the exact time with its zone. */
export function Time({ at }: { at: string }) {
  const instant = inOwnZone(at);
  const isNear = Math.abs(instant.toMillis() - now.value.toMillis()) < nearMs;
  return <TimeWithTip at={at} text={isNear ? formatRelative(instant, now.value) : formatDay(instant)} tip={formatExact(instant)} />;
}

/** Shows a day in a table; "Never" without one. */
export function Day({ at }: { at: string | null }) {
  if (at === null) return <span class="faint">Never</span>;
  const instant = inOwnZone(at);
  return <TimeWithTip at={at} text={formatDay(instant)} tip={formatExact(instant)} isInTable />;
}

export function Moment({ at, isInTable = false }: { at: string; isInTable?: boolean }) {
  const instant = inOwnZone(at);
  return <TimeWithTip at={at} text={formatMinute(instant)} tip={formatExact(instant)} isInTable={isInTable} />;
}

/** Returns the time when a key expires, in the zone that was chosen for it. */
export function toExpiry(at: string, zone: string | null): DateTime {
  const there = DateTime.fromISO(at, { zone: zone ?? ownZone.value });
  return there.isValid ? there : inOwnZone(at);
}

/** Shows the day when a key expires, in the zone chosen for it. Hover and focus show the time there and in the machine's zone. */
export function ExpiryDay({ at, zone, isInTable = false }: { at: string; zone: string | null; isInTable?: boolean }) {
  const end = toExpiry(at, zone);
  const own = inOwnZone(at);
  const tip = end.zoneName === own.zoneName ? formatInstant(end) : `${formatInstant(end)} (${formatInstant(own)})`;
  return <TimeWithTip at={at} text={formatDay(end)} tip={`${tip}, ${formatRelative(end, now.value)}`} isInTable={isInTable} />;
}
