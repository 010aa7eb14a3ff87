import { DateTime } from 'luxon';
import { isTimeZone } from '#contract/calendar.ts';
import { CallkeyError } from './client/errors.ts';

const localForm = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?$/;

/**
 * Converts an option's local time, such as `2026-11-21 09:00`, to UTC. Leaves other texts as they are, to be validated later.
 *
 * @throws CallkeyError `usage` for a local time that doesn't exist or happens twice, because clocks change
 */
export function toUtc(option: string, text: string | undefined, zone: string | undefined): string | undefined {
  if (zone !== undefined && !isTimeZone(zone))
    throw new CallkeyError('usage', `--zone ${zone}: must be an IANA time zone, such as Europe/Berlin.`);
  if (text === undefined || !localForm.test(text)) return text;
  if (zone === undefined)
    throw new CallkeyError(
      'usage',
      `${option} ${text}: add --zone, such as --zone Europe/Berlin, or specify a time in UTC that ends in Z.`,
    );
  const local = DateTime.fromISO(text.replace(' ', 'T'), { zone });
  const isReal = local.isValid && local.toISO({ includeOffset: false })?.startsWith(text.replace(' ', 'T'));
  if (!isReal) throw new CallkeyError('usage', `${option} ${text}: this time doesn't exist in ${zone}.`);
  if (local.getPossibleOffsets().length > 1)
    throw new CallkeyError(
      'usage',
      `${option} ${text}: this time happens twice in ${zone}, because clocks change. Specify a time in UTC that ends in Z.`,
    );
  return local.toUTC().toISO() ?? text;
}
