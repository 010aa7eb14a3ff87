import { DateTime } from 'luxon';
import { now, ownZone } from '../state/clock.ts';
import { formatDay, formatInstant, formatMinute, formatPast, formatRelative } from '../state/format.ts';

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

function formatExact(instant: DateTime, mayBeFuture: boolean): string {
  return `${formatInstant(instant)}, ${mayBeFuture ? formatRelative(instant, now.value) : formatPast(instant, now.value)}`;
}

/** Shows a past time relatively, or as the day if it's long ago. Hover and focus show the exact time with its zone. */
export function Time({ at }: { at: string }) {
  const instant = inOwnZone(at);
  const isNear = now.value.toMillis() - instant.toMillis() < nearMs;
  return <TimeWithTip at={at} text={isNear ? formatPast(instant, now.value) : formatDay(instant)} tip={formatExact(instant, false)} />;
}

/** @property mayBeFuture whether it isn't known to be in the past */
type DayProps = { at: string | null; mayBeFuture?: boolean };

/** Shows a day in a table; "Never" without one. */
export function Day({ at, mayBeFuture = false }: DayProps) {
  if (at === null) return <span class="faint">Never</span>;
  const instant = inOwnZone(at);
  return <TimeWithTip at={at} text={formatDay(instant)} tip={formatExact(instant, mayBeFuture)} isInTable />;
}

/** @property mayBeFuture whether it isn't known to be in the past */
type MomentProps = { at: string; mayBeFuture?: boolean; isInTable?: boolean };

export function Moment({ at, mayBeFuture = false, isInTable = false }: MomentProps) {
  const instant = inOwnZone(at);
  return <TimeWithTip at={at} text={formatMinute(instant)} tip={formatExact(instant, mayBeFuture)} isInTable={isInTable} />;
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
