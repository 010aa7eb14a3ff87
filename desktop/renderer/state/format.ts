import { DateTime } from 'luxon';
import { csvRow, csvStart } from '#contract/files/csv.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { cutCodePoints, isWithinCodePoints } from '#contract/text/text.ts';

/** How much of the user's own text a message repeats, so that a line of 10,000 characters doesn't flood it. */
const maxRepeated = 40;

/** Shortens what a user has typed or pasted, for a message that repeats it. */
export function shorten(text: string): string {
  return isWithinCodePoints(text, maxRepeated) ? text : `${cutCodePoints(text, maxRepeated - 1)}…`;
}

/** How many rows the core has counted. */
export type Total = { total: number; totalIsMore: boolean };

/** Says how much of a list is loaded: "50 of 60 calls". */
export function describeLoaded(loaded: number, { total, totalIsMore }: Total, one: string): string {
  if (totalIsMore) return `${formatCount(loaded)} of more than ${counted(total, one)}`;
  return total > loaded ? `${formatCount(loaded)} of ${counted(total, one)}` : counted(loaded, one);
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' });
const unitSeconds: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['minute', 60],
  ['hour', 3_600],
  ['day', 86_400],
];

/** A little less than any year, even if clocks change. Calendar years are computed only beyond it: that takes a fifth of a row's time. */
const yearSeconds = 364 * 86_400;

/** Formats a relative time in the largest unit that fits: "3 days ago", "in 71 days"; from a year on, "in 3 years, 10 months". */
export function formatRelative(instant: DateTime, from: DateTime): string {
  const seconds = (instant.toMillis() - from.toMillis()) / 1_000;
  // The core's clock may be slightly ahead of this one.
  if (seconds > -45 && seconds < 15) return 'just now';
  if (seconds < 45 && seconds > 0) return 'in a moment';
  if (Math.abs(seconds) >= yearSeconds) {
    const { years, months } = instant.diff(from, ['years', 'months']);
    if (years !== 0) return formatYears(years, Math.trunc(months));
  }
  const [unit, size] = unitSeconds.findLast(([, size]) => Math.abs(seconds) >= size) ?? ['minute', 60];
  return relative.format(Math.trunc(seconds / size) || Math.sign(seconds), unit);
}

/** Formats a time that's known to be in the past. The console's clock may be behind, because it's updated only every minute. */
export function formatPast(instant: DateTime, now: DateTime): string {
  return formatRelative(instant > now ? now : instant, now);
}

/** @param years negative for the past, as are `months` */
function formatYears(years: number, months: number): string {
  const text = [counted(Math.abs(years), 'year'), ...(months === 0 ? [] : [counted(Math.abs(months), 'month')])].join(', ');
  return years > 0 ? `in ${text}` : `${text} ago`;
}

/** Reads a whole number as people type it, such as "10,000" or "10.000". @returns NaN if it isn't one */
export function readWhole(text: string): number {
  const typed = text.trim();
  const plain = /^[1-9]\d{0,2}([.,]\d{3})+$/.test(typed) ? typed.replaceAll(/[.,]/g, '') : typed;
  return /^\d+$/.test(plain) ? Number(plain) : Number.NaN;
}

/** Reads a number as people type it: "0.5", "0,5", or "1,000" as the console writes a thousand. @returns NaN if it isn't one */
export function readDecimal(text: string): number {
  const typed = text.trim();
  const isGrouped = /^[1-9]\d{0,2}(,\d{3})+$/.test(typed);
  return Number(isGrouped ? typed.replaceAll(',', '') : typed.replace(',', '.'));
}

/** Formats a calendar day: "31 Jan 2027". */
export function formatDay(instant: DateTime): string {
  return instant.setLocale('en').toFormat('d LLL yyyy');
}

/** Formats a calendar day with hours and minutes: "31 Jan 2027, 23:59". */
export function formatMinute(instant: DateTime): string {
  return instant.setLocale('en').toFormat('d LLL yyyy, HH:mm');
}

/** Formats a time to the second, with the zone's name: "31 Jan 2027, 23:59:59 Europe/Berlin". */
export function formatInstant(instant: DateTime): string {
  return `${instant.setLocale('en').toFormat('d LLL yyyy, HH:mm:ss')} ${instant.zoneName}`;
}

/** Formats a calendar day from the API: "31 Jan 2027" for "2027-01-31". */
export function formatIsoDay(iso: string): string {
  return formatDay(DateTime.fromISO(iso, { zone: 'utc' }));
}

/** Formats the calendar days in a text from the API: "from 1 Oct 2026 to 31 Oct 2026". */
export function formatDates(text: string): string {
  return text.replace(/\b\d{4}-\d{2}-\d{2}\b/g, formatIsoDay);
}

/** Formats the month of a calendar day: "January 2027". */
export function formatMonth(iso: string): string {
  return DateTime.fromISO(iso, { zone: 'utc' }).setLocale('en').toFormat('LLLL yyyy');
}

/** Formats minutes and seconds as a phone does: "2:16". */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** Formats how long ago something was loaded: "just now", "10 s ago", "3 min ago". */
export function formatAge(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 5_000) * 5;
  if (seconds <= 0) return 'just now';
  return seconds < 60 ? `${seconds} s ago` : `${Math.floor(seconds / 60)} min ago`;
}

export type Sort<Column extends string> = { column: Column; isDescending: boolean };

/** The value that a column sorts by. Texts sort in natural order; null sorts last in either direction. */
export type SortValue = string | number | null;

const texts = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

export function sorted<Row>(rows: readonly Row[], sortValue: (row: Row) => SortValue, isDescending: boolean): Row[] {
  const sign = isDescending ? -1 : 1;
  return rows.toSorted((rowA, rowB) => {
    const [first, second] = [sortValue(rowA), sortValue(rowB)];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return sign * (typeof first === 'number' && typeof second === 'number' ? first - second : texts.compare(String(first), String(second)));
  });
}

/** Returns the sort order after a click on a column header: by that column, or in the other direction on a second click. */
export function sortAfterPress<Column extends string>(sort: Sort<Column>, column: Column, startsDescending: boolean): Sort<Column> {
  return { column, isDescending: sort.column === column ? !sort.isDescending : startsDescending };
}

/** Formats a time as the core does in a file that it exports: "2026-11-28T10:00:00.000+01:00". */
export function formatTimestamp(iso: string, timeZone: string): string {
  return DateTime.fromISO(iso, { zone: timeZone }).toISO() ?? iso;
}

export function toCsv(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return csvStart + [head, ...rows].map(csvRow).join('');
}
