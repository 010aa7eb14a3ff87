import { z } from 'zod';
import { limits } from './limits.ts';

/** Length in code points, as people count characters: an emoji outside the basic plane is one. */
export function codePoints(text: string): number {
  return Array.from(text).length;
}

/**
 * A line of text for people: trimmed, in one normal form, without control characters (which PostgreSQL and terminals choke on)
 * and without lone surrogates (which have no UTF-8 form).
 */
export function lineSchema(max: number) {
  return z
    .string()
    .transform((text) => text.normalize('NFC').trim())
    .refine((text) => text.length > 0, { error: 'Give at least one character.' })
    .refine((text) => codePoints(text) <= max, { error: `Give at most ${max} characters.` })
    .refine(isPrintable, { error: 'Leave out control characters.' });
}

export function isPrintable(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** Text of several lines: like {@link lineSchema}, but kept as it is, with line ends and tabs, and possibly empty. */
export function textSchema(max: number) {
  return z
    .string()
    .refine((text) => codePoints(text) <= max, { error: `Give at most ${max} characters.` })
    .refine((text) => isPrintable(text.replace(/[\t\n\r]/g, '')), { error: 'Leave out control characters.' });
}

/** Whether a text can be an identifier of the service at all: one that cannot is known to name nothing, without asking. */
export function isIdentifier(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text);
}

export const identifierSchema = z.string().refine(isIdentifier, { error: 'This is no identifier of this service.' });

/** RFC 3339 in UTC with milliseconds, on the wire. */
const instantError = { error: 'Give an instant as RFC 3339 in UTC, such as 2026-11-21T09:00:00.000Z.' };
export const instantSchema = z.iso.datetime(instantError).refine((text) => text.length <= 30, instantError);

/** Lower case and without surrounding space: two spellings of one address are one user. */
export function normalEmail(text: string): string {
  return text.normalize('NFC').trim().toLowerCase();
}

export const emailSchema = z
  .string()
  .transform(normalEmail)
  .refine((text) => /^[^\s@]+@[^\s@]+$/.test(text) && text.length <= limits.email && isPrintable(text), {
    error: 'Give an e-mail address.',
  });

/** How names are compared in a search: without case, accents and the shapes that letters come in. */
export function folded(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
}
