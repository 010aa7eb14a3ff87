import { domainToUnicode } from 'node:url';
import { canonicalDomain } from '#contract/text/email.ts';

/** Domains whose letters can't be mistaken for those of another alphabet. Others are shown in ASCII, as in browsers. */
const distinct = [
  /^[\p{Script=Latin}\d.-]+$/u,
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}ー\da-z.-]+$/u,
  ...['Cyrillic', 'Greek', 'Arabic', 'Hebrew', 'Thai', 'Devanagari', 'Armenian', 'Georgian'].map(
    (script) => new RegExp(`^[\\p{Script=${script}}\\p{M}\\d.-]+$`, 'u'),
  ),
];

/** Writes a canonical address for people, with the letters of its domain, if they can't be mistaken for others. */
export function readableEmail(email: string): string;
export function readableEmail(email: string | null): string | null;
export function readableEmail(email: string | null): string | null {
  if (email === null) return null;
  const at = email.indexOf('@') + 1;
  const domain = email.slice(at);
  if (!domain.includes('xn--')) return email;
  const readable = domainToUnicode(domain);
  const isDistinct = distinct.some((letters) => letters.test(readable)) && !/[\u0131\u0251\u0261]/.test(readable);
  return isDistinct && canonicalDomain(readable) === domain ? email.slice(0, at) + readable : email;
}
