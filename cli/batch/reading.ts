import { isSupportedCountry } from 'libphonenumber-js/min';
import { DateTime } from 'luxon';
import { z } from 'zod';
import { type PlaceCall, validatePlaceCall } from '#contract/calls/calls.ts';
import { notE164, readPhone } from '#contract/calls/phone.ts';
import { describeTimeZone, findTimeZone } from '#contract/time-zones.ts';
import type { Validated } from '#contract/validate.ts';
import { usageError } from '../client/errors.ts';

/** How to read a CSV file's columns. Part of a run's identity, because a file that's read differently contains different calls. */
export const readingSchema = z.object({
  /** Maps callkey's column names to those in the header: `{ phone: 'Mobile' }`. */
  columns: z.record(z.string(), z.string()),
  /** The country for numbers without a country code (ISO 3166-1, two letters). */
  country: z.string().nullable(),
  /** The IANA time zone of local times. */
  zone: z.string().nullable(),
});
export type Reading = z.infer<typeof readingSchema>;

/** How a file is read without any of the options. */
export const plainReading: Reading = { columns: {}, country: null, zone: null };

export const callColumns = ['phone', 'name', 'timeZone', 'requestId', 'notBefore', 'notAfter'] as const;
export type CallColumn = (typeof callColumns)[number];
export const variablePrefix = 'var.';

/** Parses --columns. @param text such as `phone=Mobile,name=Kunde` @throws CallkeyError `usage` */
export function parseColumns(text: string): Reading['columns'] {
  // A comma that isn't followed by another pair belongs to a name.
  const pairs = text.split(/,(?=\s*[\w.]+=)/).map((pair): [string, string] => {
    const [, column = '', header = ''] = /^([^=]+)=(.+)$/s.exec(pair.trim()) ?? [];
    const isKnown = callColumns.some((name) => name === column) || (column.startsWith(variablePrefix) && column !== variablePrefix);
    if (isKnown) return [column, header.trim()];
    throw usageError(
      `--columns "${pair}": must be pairs such as phone=Mobile, with callkey's column first and yours second. callkey's columns are ${callColumns.join(', ')} and ${variablePrefix}NAME.`,
    );
  });
  // Sorted, so that two readings can be compared as text.
  const columns = Object.fromEntries(pairs.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  if (Object.keys(columns).length < pairs.length) throw usageError('--columns: specify each column only once.');
  return columns;
}

/** Parses --country. @throws CallkeyError `usage` */
export function parseCountry(text: string): string {
  const code = text.toUpperCase();
  if (isSupportedCountry(code)) return code;
  throw usageError(`--country "${text}": must be a two-letter country code, such as DE.`);
}

/** Validates a call whose phone number may be written in any common format. */
export function validateCall(input: unknown, country: string | undefined): Validated<PlaceCall> {
  if (!isRecord(input) || !isRecord(input['contact']) || typeof input['contact']['phone'] !== 'string') return validatePlaceCall(input);
  const { contact } = input;
  const read = readPhone(input['contact']['phone'], { country, accept: 'valid' });
  if ('phone' in read) return validatePlaceCall({ ...input, contact: { ...contact, phone: read.phone } });
  const validated = validatePlaceCall(input);
  if (validated.ok) return validated;
  const isNational = read.reason === notE164 && /^(?:\D*\d){5}/.test(input['contact']['phone']);
  const message = isNational ? `${notE164.slice(0, -1)}, or add --country, such as --country DE.` : read.reason;
  return {
    ok: false,
    errors: validated.errors.map((error) => (error.path === 'contact.phone' ? { ...error, message } : error)),
  };
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

const localForm = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?$/;

/** Parses --zone. @throws CallkeyError `usage` */
export function parseZone(text: string): string {
  const zone = findTimeZone(text);
  if (zone === null) throw usageError(`--zone ${text}: ${describeTimeZone(text)}`);
  return zone;
}

/**
 * Converts a local time, such as `2026-11-21 09:00`, to UTC. Leaves other texts as they are, to be validated later.
 *
 * @returns the reason if the time doesn't exist, or occurs twice because the clocks are set back, or if there's no zone
 */
export function toUtc(text: string, zone: string | null): { time: string } | { reason: string } {
  if (!localForm.test(text)) return { time: text };
  if (zone === null) return { reason: 'add --zone, such as --zone Europe/Berlin, or specify a time in UTC that ends in Z.' };
  const form = text.replace(' ', 'T');
  const local = DateTime.fromISO(form, { zone });
  const utc = local.toISO({ includeOffset: false })?.startsWith(form) ? local.toUTC().toISO() : null;
  if (utc === null) return { reason: `this time doesn't exist in ${zone}.` };
  if (local.getPossibleOffsets().length > 1)
    return { reason: `this time occurs twice in ${zone}, because the clocks are set back. Specify it in UTC, ending in Z.` };
  return { time: utc };
}
