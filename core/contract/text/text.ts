import { z } from 'zod';
import { limits } from '../limits.ts';
import { canonicalEmail, hasCanonicalDomain } from './email.ts';
import { isObject } from './json.ts';

/** Code points are closer to what people count as characters: an emoji is one. */
export function countCodePoints(text: string): number {
  return Array.from(text).length;
}

/** Whether a text has at most `max` code points. Each has one or two UTF-16 units, so most texts don't have to be counted. */
export function isWithinCodePoints(text: string, max: number): boolean {
  return text.length <= max || (text.length <= 2 * max && countCodePoints(text) <= max);
}

export function cutCodePoints(text: string, max: number): string {
  return isWithinCodePoints(text, max) ? text : Array.from(text).slice(0, max).join('');
}

/** NFC combines at most this many code points into one (UAX #15 §9, expansion factors). */
const maxDecomposed = 4;

/**
 * Normalizes a text to NFC if the result can have at most `max` code points. A longer text is returned unchanged, because it's too long
 * anyway, and normalizing could take seconds: it sorts each run of combining marks in quadratic time.
 */
export function toNfc(text: string, max: number): string {
  return isWithinCodePoints(text, maxDecomposed * max) ? text.normalize('NFC') : text;
}

/** Trims and normalizes a line for storage. Normalizing never creates space at either end, so the text can be trimmed first. */
export function normalizeLine(text: string, max: number): string {
  // JavaScript treats U+FEFF as a space and would trim it, but it's an invisible character and has to be refused.
  return toNfc(text.includes('\uFEFF') ? text : text.trim(), max);
}

/**
 * Characters that are invisible or only give a direction: two names that differ only by them look the same. This goes by Unicode's
 * properties, because a list would never be complete. The characters of category `Cf` in the middle are visible signs, such as U+06DD. The
 * last three are blank, but have none of the properties.
 */
const hidden =
  /[\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}[\p{Cf}--[\u0600-\u0605\u06DD\u070F\u0890\u0891\u08E2\u{110BD}\u{110CD}]]\u2800\u{16FE4}\u{1D159}]/v;
const everyHidden = new RegExp(hidden, 'gv');

/** Cursive letters: a joiner between two of them changes their shapes. */
const cursive = String.raw`[[\p{L}\p{M}]&&[\p{scx=Arabic}\p{scx=Syriac}\p{scx=Mandaic}\p{scx=Nko}\p{scx=Mongolian}\p{scx=Adlam}\p{scx=Rohg}]]`;
/** Letters of scripts that stack or combine consonants with a virama, and their viramas. A joiner next to a virama changes their shapes. */
const stacking = String.raw`[[\p{L}\p{M}]&&[\p{scx=Deva}\p{scx=Beng}\p{scx=Guru}\p{scx=Gujr}\p{scx=Orya}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}\p{scx=Khmr}\p{scx=Mymr}\p{scx=Bali}\p{scx=Java}\p{scx=Cakm}]]`;
const virama = String.raw`[\u094D\u09CD\u0A4D\u0ACD\u0B4D\u0BCD\u0C4D\u0CCD\u0D4D\u0DCA\u17D2\u1039\u103A\u1B44\uA9C0\u{11133}]`;
/**
 * Invisible characters in a place where they change what is seen: in an emoji (its variation selector, joiners and tags), in a script whose
 * letters they join, separate or vary, or after a symbol that they show as text.
 */
const visibleInPlace = [
  String.raw`\p{Emoji_Presentation}\uFE0E`,
  String.raw`\p{RGI_Emoji}`,
  String.raw`\p{Unified_Ideograph}[\uFE00-\uFE02\u{E0100}-\u{E01EF}]`,
  String.raw`[\p{Script=Mymr}\p{Script=Phags_Pa}]\uFE00`,
  String.raw`(?<=\p{Script=Mongolian})(?:[\u180B-\u180D\u180F]|\u180E(?=\p{Script=Mongolian}))`,
  `(?<=${cursive})[\u200C\u200D](?=${cursive})`,
  `(?<=${virama})(?:\u200D|\u200C(?=${stacking}))`,
  `(?<=${stacking})[\u200C\u200D](?=${virama})`,
].join('|');
const hiddenOrInPlace = new RegExp(`${visibleInPlace}|(${hidden.source})`, 'gv');
/** Emoji that need a variation selector to be shown as emoji. Some keyboards leave it out within longer emoji. */
const bareEmoji = /[\p{Emoji}--\p{Emoji_Presentation}--[0-9#*]](?![\uFE0F\p{Emoji_Modifier}])/gv;

/** Finds the first invisible character that doesn't change what is seen. */
function findHidden(text: string): string | null {
  if (!hidden.test(text)) return null;
  for (const [, character] of text.replace(bareEmoji, '$&\uFE0F').matchAll(hiddenOrInPlace)) if (character !== undefined) return character;
  return null;
}

export function describeLineProblem(line: string, max: number, ifEmpty = 'Must not be empty.'): string | null {
  if (line === '') return ifEmpty;
  if (!isWithinCodePoints(line, max)) return `Must be at most ${max} characters.`;
  const problem = describeUnprintable(line);
  if (problem !== null) return problem;
  const character = findHidden(line);
  if (character === null) return /[^\p{Z}\p{M}\p{Cf}\p{Co}]/u.test(line) ? null : 'Must contain at least one visible character.';
  return `Remove the invisible character U+${toHex(character)}, which can make one name look like another. Type the name instead of pasting it.`;
}

function toHex(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
}

/**
 * The schema of a line of text for people, such as a name, which is trimmed and normalized. Control characters cause problems in PostgreSQL
 * and terminals, lone surrogates can't be encoded in UTF-8, and invisible characters can mislead, so none of these are allowed.
 */
export function lineSchema(max: number, ifEmpty?: string) {
  return z
    .string()
    .transform((text) => normalizeLine(text, max))
    .check(({ value, issues }) => {
      const message = describeLineProblem(value, max, ifEmpty);
      if (message !== null) issues.push({ code: 'custom', message, input: value });
    })
    .meta({ description: `1 to ${max} characters after trimming, without control or invisible characters.` });
}

export function isPrintable(text: string): boolean {
  return describeUnprintable(text) === null;
}

function describeUnprintable(text: string): string | null {
  if (!text.isWellFormed()) return 'Must not contain half of a character (a lone surrogate). Type the text again instead of pasting it.';
  return /\p{Cc}/u.test(text) ? 'Must not contain control characters.' : null;
}

export function checkPrintable({ value, issues }: z.core.ParsePayload<string>): void {
  const message = describeUnprintable(value);
  if (message !== null) issues.push({ code: 'custom', message, input: value });
}

/** The schema of a text that's stored unchanged, with line breaks and tabs, and may be empty. */
export function textSchema(max: number) {
  return z
    .string()
    .refine((text) => isWithinCodePoints(text, max), { error: `Must be at most ${max} characters.` })
    .check(({ value, issues }) => checkPrintable({ value: value.replace(/[\t\n\r]/g, ''), issues }))
    .meta({ maxLength: max });
}

/**
 * Checks an object of texts with names before the record that reads it, because records silently skip `__proto__`, and checking thousands of
 * invalid texts would take too long.
 */
export function namedTexts(noun: string, max: number) {
  return z
    .unknown()
    .refine((texts) => !isObject(texts) || !Object.hasOwn(texts, '__proto__'), { error: `A ${noun} can't be named __proto__.` })
    .refine((texts) => !isObject(texts) || Object.keys(texts).length <= max, { error: `Must have at most ${max} ${noun}s.` });
}

/** Whether a text could be an ID of this service. If not, there's no need to look it up. */
export function isIdentifier(text: string): boolean {
  return identifierForm.test(text);
}

const identifierForm = /^[A-Za-z0-9_-]{1,64}$/;
export const identifierSchema = z
  .string()
  .refine(isIdentifier, { error: 'Must be an ID of 1 to 64 letters, digits, hyphens and underscores.' })
  .meta({ pattern: identifierForm.source });

const instantError = { error: 'Must be a time in UTC in RFC 3339 format, such as 2026-11-21T09:00:00.000Z.' };
/** A time in RFC 3339, in UTC with milliseconds, as {@link timestamp} writes it. */
export const instantSchema = z.iso.datetime(instantError).refine((text) => text.length <= 30, instantError);

/** A time from a client, which may also end in `+00:00`, as in Python. */
export const inputInstantSchema = z.iso
  .datetime({ ...instantError, offset: true, abort: true })
  .refine((text) => /^.{1,29}(Z|\+00:00)$/.test(text), instantError)
  .meta({ pattern: '(Z|\\+00:00)$' });

let lastTimestamp = { at: 0, text: '1970-01-01T00:00:00.000Z' };

/** Formats an instant as RFC 3339 in UTC with milliseconds. @param at a DateTime, or milliseconds since 1970 */
export function timestamp(at: { valueOf(): number }): string {
  const time = at.valueOf();
  // Reuse the text, because under load, many calls are placed in the same millisecond.
  if (time !== lastTimestamp.at) lastTimestamp = { at: time, text: new Date(time).toISOString() };
  return lastTimestamp.text;
}

/** A schema must have checked the text first. */
export function parseTimestamp(text: string): number {
  return Date.parse(text);
}

/** Lowercases and trims an address, and writes its domain in ASCII, so that all its spellings mean the same user. */
export function normalizeEmail(text: string): string {
  const line = normalizeLine(text, limits.email).toLowerCase();
  return line.length <= limits.email ? canonicalEmail(line) : line;
}

export const emailSchema = z
  .string()
  .transform(normalizeEmail)
  .superRefine((text, context) => {
    const character = hidden.exec(text)?.[0];
    const isAddress = /^[^\s@]+@[^\s@]+$/.test(text) && hasCanonicalDomain(text) && text.length <= limits.email && isPrintable(text);
    if (isAddress && character === undefined) return;
    const also = character === undefined ? '' : `, without invisible characters. Remove U+${toHex(character)}`;
    context.addIssue({ code: 'custom', message: `Must be an email address${also}.` });
  });

/** Prepares a name for comparison that ignores case, accents, width, variant forms of letters, and everything invisible. */
export function foldText(text: string): string {
  const letters = dropInvisible(text.normalize('NFKD')).replace(/\p{M}/gu, '');
  // Put together what isn't an accent, such as the syllables of Korean.
  return letters.normalize('NFC').toLowerCase();
}

/** Keeps invisible characters where a name may have them. */
export function withoutHidden(text: string): string {
  return text.replace(hiddenOrInPlace, (match: string, character?: string) => (character === undefined ? match : ''));
}

export function dropInvisible(text: string): string {
  return text.replace(everyHidden, '');
}

/**
 * Writes a phone number, or the beginning of one, with the digits, spaces and hyphens of ASCII. Removes invisible characters, the start of
 * a link, and the apostrophe that spreadsheet programs put before text.
 */
export function toPlainPhone(text: string): string {
  return dropInvisible(text.replace(/[\p{Zs}\p{Zl}\p{Zp}]/gu, ' '))
    .replace(/[\u0660-\u0669\u06F0-\u06F9]/g, (digit) => String(digit.charCodeAt(0) & 0xf))
    .replace(/[\uFF01-\uFF5E]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0))
    .replace(/[\p{Pd}\u2212\u30FC]/gu, '-')
    .trim()
    .replace(/^'?(?:tel:)?/i, '');
}

/** Returns the digits of a phone number in a search, such as `+49 (0)30 2000-1` or `030 2000`, as in E.164; null if it isn't like one. */
export function parsePhoneDigits(search: string): string | null {
  const written = toPlainPhone(search);
  if (!/^\(?[+\d(][\d ()./-]*$/.test(written)) return null;
  const digits = written
    .replace(/\(0\)/g, '')
    .replace(/[^\d+]/g, '')
    .replace(/^00/, '+');
  // Remove the zero before a number without a country code, because E.164 doesn't have it.
  return digits.replace(/^0(?=\d)/, '') || null;
}

/** Digits without `+` are taken to start with a country code. */
export function toPhonePrefix(search: string): string | null {
  const digits = parsePhoneDigits(search);
  return digits === null || digits.startsWith('+') ? digits : `+${digits}`;
}
