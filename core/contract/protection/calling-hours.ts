import { z } from 'zod';

export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export type Weekday = (typeof weekdays)[number];

const maxHoursRules = 500;
/** For each prefix. Finding the next opening may have to look at all windows of a month. */
const maxDailyWindows = 12;

const timeError = { error: 'Must be a time from 00:00 to 24:00, such as 09:00.' };
const timeForm = /^(?:(?:[01]\d|2[0-3]):[0-5]\d|24:00)$/;
const timeSchema = z.string().regex(timeForm, timeError);

/**
 * One window, or one closed day, in the local time of the person who is called. Several rules make several windows. On a date that has a
 * rule, only rules for that date apply. Of these, the rules with the longest matching prefix decide.
 */
const hoursRuleShape = z.strictObject({
  prefix: z.string().regex(/^(?:\+[1-9]\d{0,14})?$/, { error: 'Must be the beginning of a number, such as +49, or empty for all.' }),
  days: z
    .array(z.enum(weekdays, { error: `Must be one of ${weekdays.join(', ')}.` }))
    .min(1, { error: 'Must contain at least one day.' })
    .max(weekdays.length)
    .optional(),
  date: z.iso.date({ error: 'Must be a date in the format YYYY-MM-DD.' }).optional(),
  from: timeSchema.optional(),
  to: timeSchema.optional(),
  closed: z.literal(true, { error: 'Must be true, or omitted.' }).optional(),
});
export type HoursRule = z.infer<typeof hoursRuleShape>;

export const hoursRuleSchema = hoursRuleShape.check(({ value, issues }) => {
  const problem = findRuleProblem(value);
  if (problem) issues.push({ code: 'custom', ...problem, input: value });
});

function findRuleProblem({ days, date, from, to, closed }: HoursRule): { path: string[]; message: string } | null {
  if ((days === undefined) === (date === undefined)) return { path: ['days'], message: 'Must have either days or a date.' };
  if (closed) return from || to ? { path: ['closed'], message: "A closed day can't have from or to." } : null;
  if (from === undefined || to === undefined) return { path: ['from'], message: 'Must have from and to, or "closed": true.' };
  // The schema already refuses a text that isn't a time, and comparing it would add a wrong message.
  if (!isTime(from) || !isTime(to)) return null;
  return from < to ? null : { path: ['to'], message: 'The end must be later than the start. For a window past midnight, use two rules.' };
}

export const hoursRulesSchema = z
  .array(hoursRuleSchema)
  .max(maxHoursRules, { error: `Must contain at most ${maxHoursRules} rules.` })
  .check(({ value, issues }) => {
    const index = findExtraWindow(value);
    const message = `At most ${maxDailyWindows} windows per day are allowed for each prefix.`;
    if (index >= 0) issues.push({ code: 'custom', path: [index], message, input: value });
  });

/** Returns the index of the first rule that gives a day too many windows; -1 if there's none. */
function findExtraWindow(rules: readonly HoursRule[]): number {
  const windows = new Map<string, number>();
  return rules.findIndex(({ prefix, days, date }) =>
    [...new Set<string | undefined>(days ?? [date])].some((day) => {
      const count = (windows.get(`${prefix} ${day}`) ?? 0) + 1;
      windows.set(`${prefix} ${day}`, count);
      return count > maxDailyWindows;
    }),
  );
}

/** A part of a local day, in minutes since midnight: includes `from`, excludes `to`. */
export type Window = { from: number; to: number };

/**
 * Returns the windows of a day that has these rules, earliest first. Merges those that overlap or follow each other, and omits what isn't a
 * window, because someone may still be entering it.
 */
export function toWindows(rules: readonly HoursRule[]): Window[] {
  if (rules.some(({ closed }) => closed)) return [];
  const windows = rules
    .map(({ from = '', to = '' }) => ({ from: toMinutes(from), to: toMinutes(to) }))
    .filter(({ from, to }) => from < to)
    .sort((a, b) => a.from - b.from);
  const merged: Window[] = [];
  for (const window of windows) {
    const last = merged.at(-1);
    if (last && window.from <= last.to) last.to = Math.max(last.to, window.to);
    else merged.push(window);
  }
  return merged;
}

/** Whether a text is a time of day, as rules have it. */
export function isTime(text: string): boolean {
  return timeForm.test(text);
}

/** @returns NaN for a text that isn't a time */
export function toMinutes(time: string): number {
  return isTime(time) ? Number(time.slice(0, 2)) * 60 + Number(time.slice(3)) : Number.NaN;
}

export function formatMinutes(minutes: number): string {
  const pad = (count: number) => String(count).padStart(2, '0');
  return `${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`;
}
