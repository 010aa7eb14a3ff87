import { DateTime } from 'luxon';
import { isTimeZone } from '#contract/calendar.ts';
import { CallkeyError } from '../client/errors.ts';

const localForm = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?$/;

/** Parses --zone. @throws CallkeyError `usage` */
export function parseZone(text: string): string {
  if (isTimeZone(text)) return text;
  throw new CallkeyError('usage', `--zone ${text}: must be an IANA time zone, such as Europe/Berlin.`);
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
