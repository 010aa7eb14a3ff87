import { z } from 'zod';
import { limits } from '../limits.ts';

/** Length in code points, as people count characters: an emoji outside the basic plane is one. */
export function codePoints(text: string): number {
  return Array.from(text).length;
}

/** Whether a text has no more code points than that. Each has one or two UTF-16 units, which need no counting. */
export function isWithinCodePoints(text: string, max: number): boolean {
  return text.length <= max || (text.length <= 2 * max && codePoints(text) <= max);
}

/** No code point in NFC comes from more of them than this (UAX #15 §9, expansion factors). */
const mostDecomposed = 4;

/**
 * A text in NFC, if that can have `max` code points at all. What is longer stays as it is, which is too long, too: normalising sorts
 * every run of combining marks, in the square of its length, and 64 KiB of them take seconds.
 */
export function normalized(text: string, max: number): string {
  return isWithinCodePoints(text, mostDecomposed * max) ? text.normalize('NFC') : text;
}

/** A line as it is kept: trimmed, in one normal form. No normalising makes space at either end, so trimming first is the same. */
export function normalLine(text: string, max: number): string {
  // For JavaScript U+FEFF is a space, which trimming would pass over: it is hidden and refused.
  return normalized(text.includes('\uFEFF') ? text : text.trim(), max);
}

/**
 * Invisible characters and those that turn the direction of text: with them, two different names look the same. The joiners (U+200C, U+200D)
 * stay, since emoji and some scripts need them.
 */
const hidden = /[\u061C\u200B\u200E\u200F\u202A-\u202E\u2060\u2066-\u2069\uFEFF]/;

/** What is wrong with a line, as a sentence that says what to do; null where nothing is. */
export function lineProblem(line: string, max: number): string | null {
  if (line === '') return 'Must not be empty.';
  if (!isWithinCodePoints(line, max)) return `Must be at most ${max} characters.`;
  if (!isPrintable(line)) return 'Must not contain control characters.';
  const [found] = hidden.exec(line) ?? [];
  if (found === undefined) return null;
  const code = found.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  return `Remove the invisible character U+${code}, which can make one name look like another. Type the name instead of pasting it.`;
}

/**
 * A line of text for people, such as a name: trimmed, in one normal form, without control characters (which PostgreSQL and terminals choke
 * on), without lone surrogates (which have no UTF-8 form) and without invisible characters.
 */
export function lineSchema(max: number) {
  return z
    .string()
    .transform((text) => normalLine(text, max))
    .check(({ value, issues }) => {
      const message = lineProblem(value, max);
      if (message !== null) issues.push({ code: 'custom', message, input: value });
    })
    .meta({ description: `1 to ${max} characters, trimmed, without control or invisible characters.` });
}

export function isPrintable(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** Text of several lines: like {@link lineSchema}, but kept as it is, with line ends and tabs, and possibly empty. */
export function textSchema(max: number) {
  return z
    .string()
    .refine((text) => isWithinCodePoints(text, max), { error: `Must be at most ${max} characters.` })
    .refine((text) => isPrintable(text.replace(/[\t\n\r]/g, '')), { error: 'Must not contain control characters.' })
    .meta({ maxLength: max });
}

/** Whether a text can be an identifier of the service at all: one that cannot is known to name nothing, without asking. */
export function isIdentifier(text: string): boolean {
  return identifierForm.test(text);
}

const identifierForm = /^[A-Za-z0-9_-]{1,64}$/;
export const identifierSchema = z
  .string()
  .refine(isIdentifier, { error: "This isn't a valid ID." })
  .meta({ pattern: identifierForm.source });

const instantError = { error: 'Must be a time in UTC in RFC 3339 format, such as 2026-11-21T09:00:00.000Z.' };
/** RFC 3339 in UTC with milliseconds, as {@link timestamp} writes it. */
export const instantSchema = z.iso.datetime(instantError).refine((text) => text.length <= 30, instantError);

/** The same from a client, which may also end it in `+00:00`, as Python does. */
export const givenInstantSchema = z.iso
  .datetime({ ...instantError, offset: true, abort: true })
  .refine((text) => /^.{1,29}(Z|\+00:00)$/.test(text), instantError)
  .meta({ pattern: '(Z|\\+00:00)$' });

/** An instant as RFC 3339 in UTC with milliseconds. @param at a DateTime, or epoch milliseconds */
export function timestamp(at: { valueOf(): number }): string {
  return new Date(at.valueOf()).toISOString();
}

/** Lower case and without surrounding space: two spellings of one address are one user. */
export function normalEmail(text: string): string {
  return normalLine(text, limits.email).toLowerCase();
}

export const emailSchema = z
  .string()
  .transform(normalEmail)
  .refine((text) => /^[^\s@]+@[^\s@]+$/.test(text) && text.length <= limits.email && isPrintable(text) && !hidden.test(text), {
    error: 'Must be an email address, without invisible characters.',
  });

/** How names are compared in a search: without case, accents and the shapes that letters come in. */
export function folded(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
}

/**
 * The digits of a phone number that someone searches for as people write it, such as `+49 (0)30 2000-1` or `030 2000`, as they are in E.164. Null
 * if it doesn't look like one.
 */
export function phoneDigits(search: string): string | null {
  if (!/^[+\d(][\d\s()./\u2010-\u2014-]*$/u.test(search)) return null;
  const digits = search
    .replace(/\(0\)/g, '')
    .replace(/[^\d+]/g, '')
    .replace(/^00/, '+');
  // A number without its country begins with a zero that E.164 has not.
  const found = digits.replace(/^0(?=\d)/, '');
  return found.replace('+', '').length < 3 ? null : found;
}
