import { DateTime } from 'luxon';
import { plusDays } from '#contract/calendar.ts';
import { now, ownZone } from './clock.ts';

// Days are text in the format YYYY-MM-DD, and times of day in the format HH:MM.

/** Returns the current day in the user's time zone. */
export function today(): string {
  return now.value.setZone(ownZone.value).toFormat('yyyy-MM-dd');
}

const dayFormats = ['yyyy-MM-dd', 'd MMM yyyy', 'd MMMM yyyy', 'MMM d yyyy', 'MMMM d yyyy', 'd.M.yyyy', 'd/M/yyyy', 'M/d/yyyy', 'ddMMyyyy'];
const namedDays: Readonly<Record<string, number>> = { today: 0, tomorrow: 1, yesterday: -1 };

/** What to say if a text isn't a day. */
export const dayProblem = 'Enter a day, such as 31 Jan 2027.';

/** Whether a text is a day that exists, in the format in which days are sent to the core. */
export function isDay(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && DateTime.fromISO(text).isValid;
}

/**
 * Reads a day as people type it: "31 Jan 2027", "January 31, 2027", "31.1.2027", "2027-01-31", "tomorrow", "31 Jan".
 *
 * @param min the first possible day, which decides the year of a day without one; empty for any day
 * @returns null if it isn't a day, or may be one of two, such as 3/4/2027
 */
export function parseDay(text: string, min = ''): string | null {
  const typed = text.trim().toLowerCase();
  const distance = namedDays[typed];
  if (distance !== undefined) return plusDays(today(), distance);
  const year = Number(today().slice(0, 4));
  const [thisYear, nextYear] = [year, year + 1].map((each) => readDay(/\d{4}/.test(typed) ? typed : `${typed} ${each}`));
  return (thisYear && thisYear < min ? nextYear : thisYear) ?? null;
}

function readDay(typed: string): string | null {
  const plain = typed
    .replace(/[,\s]+/g, ' ')
    .replace(/(?<=[a-z])\./, '')
    .replace(/^(\d+)\. (?=[a-z])/, '$1 ')
    .replaceAll('. ', '.');
  const read = dayFormats
    .map((format) => DateTime.fromFormat(plain, format, { locale: 'en', zone: 'utc' }))
    .filter(({ isValid }) => isValid);
  const days = new Set(read.map((day) => day.toFormat('yyyy-MM-dd')));
  const [day] = days;
  return days.size === 1 && day !== undefined && day >= '1970' ? day : null;
}

/** Reads a time of day as people type it: "9", "9:30", "0930", "9.30 am". @returns null if it isn't one */
export function parseTime(text: string): string | null {
  const [, hourText, minute = '00', half] = /^(\d{1,2})(?:[:.h ]?([0-5]\d))? ?([ap])?\.?m?\.?$/.exec(text.trim().toLowerCase()) ?? [];
  if (hourText === undefined || (half && (Number(hourText) < 1 || Number(hourText) > 12))) return null;
  const hour = half ? (Number(hourText) % 12) + (half === 'p' ? 12 : 0) : Number(hourText);
  return hour < 24 || (hour === 24 && minute === '00') ? `${String(hour).padStart(2, '0')}:${minute}` : null;
}

export const dayMinutes = 24 * 60;

/** @property from the first day @property to the last day. Both are empty for any day */
export type Range = { from: string; to: string };

export function namedRanges(): readonly (readonly [string, Range])[] {
  const day = today();
  const last = (days: number) => ({ from: plusDays(day, 1 - days), to: day });
  const yesterday = plusDays(day, -1);
  const endOfLastMonth = plusDays(`${day.slice(0, 7)}-01`, -1);
  return [
    ['Today', last(1)],
    ['Yesterday', { from: yesterday, to: yesterday }],
    ['Last 7 days', last(7)],
    ['Last 30 days', last(30)],
    ['Last month', { from: `${endOfLastMonth.slice(0, 7)}-01`, to: endOfLastMonth }],
  ];
}
