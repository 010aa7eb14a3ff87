import { DateTime } from 'luxon';
import { describeTimeZone, findTimeZone } from '#contract/time-zones.ts';
import { CallkeyError } from '../client/errors.ts';

const localForm = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?$/;

/** Parses --zone. @throws CallkeyError `usage` */
export function parseZone(text: string): string {
  const zone = findTimeZone(text);
  if (zone === null) throw new CallkeyError('usage', `--zone ${text}: ${describeTimeZone(text)}`);
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
