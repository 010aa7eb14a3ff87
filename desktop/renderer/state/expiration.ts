import { DateTime } from 'luxon';
import type { ApiKeyView } from '#contract/console/api-keys.ts';
import { customRange, type Expiration, expiryInstant, isWithin } from '#contract/expiry.ts';
import { isDay } from './days.ts';
import { formatDay, formatInstant, formatIsoDay, formatRelative, pluralize } from './format.ts';

export const expirationChoices = ['none', '1', '2', '3', '4', '5', 'custom'] as const;
type ExpirationChoice = (typeof expirationChoices)[number];

export const expirationLabels: Readonly<Record<ExpirationChoice, string>> = {
  none: 'No expiration',
  '1': '1 Year',
  '2': '2 Years',
  '3': '3 Years',
  '4': '4 Years',
  '5': '5 Years',
  custom: 'Custom',
};

/** The form's input, possibly incomplete. */
export type ExpirationDraft = { choice: ExpirationChoice | ''; date: string; timeZone: string };

/** What a draft results in at this moment: an expiration and its description, or the field that's missing or invalid. */
type Resolved = { ok: true; expiration: Expiration; text: string } | { ok: false; field: 'choice' | 'date'; problem: string };

const years = { '1': 1, '2': 2, '3': 3, '4': 4, '5': 5 } as const;

export function resolve({ choice, date, timeZone }: ExpirationDraft, now: DateTime): Resolved {
  if (choice === '') return { ok: false, field: 'choice', problem: 'Choose an expiration.' };
  if (choice === 'none') return { ok: true, expiration: { kind: 'none' }, text: 'Works until it’s revoked.' };
  if (choice !== 'custom') return worksUntil({ kind: 'years', years: years[choice] }, now, timeZone);
  const range = customRange(now, timeZone);
  if (date === '') return { ok: false, field: 'date', problem: `Choose a date ${describeRange(now, timeZone)}.` };
  if (!isDay(date) || !isWithin(date, range))
    return { ok: false, field: 'date', problem: `The date must be ${describeRange(now, timeZone)}.` };
  return worksUntil({ kind: 'custom', date }, now, timeZone);
}

/** Describes which days are allowed for a custom expiration. These change at midnight in the time zone. */
export function describeRange(now: DateTime, timeZone: string): string {
  const { earliest, latest } = customRange(now, timeZone);
  return `from ${formatIsoDay(earliest)} to ${formatIsoDay(latest)}`;
}

/** Says that the machine's clock is wrong. @param leadMs negative if it's behind */
export function describeClockLead(leadMs: number): string {
  const [unit, size] = units.find(([, size]) => Math.abs(leadMs) >= size) ?? units[2];
  const difference = `${pluralize(Math.round(Math.abs(leadMs) / size), unit)} ${leadMs > 0 ? 'ahead of' : 'behind'}`;
  return `Your computer’s clock is ${difference} the server’s. The server decides when the key expires, so these dates follow its clock.`;
}

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

function worksUntil(expiration: Expiration, now: DateTime, timeZone: string): Resolved {
  const instant = expiryIn(timeZone, expiration, now);
  return { ok: true, expiration, text: instant ? `Works until ${formatInstant(instant)} (${formatRelative(instant, now)})` : '' };
}

function expiryIn(timeZone: string, expiration: Expiration, now: DateTime): DateTime | null {
  const end = expiryInstant(expiration, now, timeZone);
  return end === null ? null : DateTime.fromMillis(end, { zone: timeZone });
}

/** Formats the date that a choice results in, for its button. */
export function dateForChoice(choice: ExpirationChoice, now: DateTime, timeZone: string): string {
  if (choice === 'none') return 'until revoked';
  if (choice === 'custom') return 'choose a date';
  const instant = expiryIn(timeZone, { kind: 'years', years: years[choice] }, now);
  return instant ? formatDay(instant) : '';
}

/** Lists the given zone, `UTC`, and then every zone that the machine knows. */
export function timeZonesAfter(ownZone: string): string[] {
  return [...new Set([ownZone, 'UTC', ...Intl.supportedValuesOf('timeZone')])];
}

/** Returns the choice that a key was probably created with. A custom one gets no date, since the old one no longer makes sense. */
export function toExpirationChoice(apiKey: Pick<ApiKeyView, 'createdAt' | 'expiresAt' | 'expiryTimeZone'>): ExpirationChoice {
  if (apiKey.expiresAt === null) return 'none';
  const zone = apiKey.expiryTimeZone ?? 'utc';
  const created = DateTime.fromISO(apiKey.createdAt, { zone });
  const end = DateTime.fromISO(apiKey.expiresAt).toMillis();
  const matchesExpiry = (choice: keyof typeof years) => expiryInstant({ kind: 'years', years: years[choice] }, created, zone) === end;
  return expirationChoices.filter((choice) => choice !== 'none' && choice !== 'custom').find(matchesExpiry) ?? 'custom';
}
