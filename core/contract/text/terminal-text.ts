import { stripVTControlCharacters } from 'node:util';

/** These characters can reorder or hide text on a terminal: bidirectional formatting (UAX #9), and Unicode's line separators. */
const formatting = '\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069';
const unsafe = new RegExp(`[${formatting}]|[^\\P{Cc}\\t\\n]`, 'gu');
const unsafeInJson = new RegExp(`[${formatting}\\u007f-\\u009f]`, 'gu');

/** Names, files and messages from outside must not control the terminal (CWE-150). Keeps tabs and line breaks. */
export function stripControls(text: string): string {
  return stripVTControlCharacters(text).replace(unsafe, '');
}

/** JSON.stringify escapes only C0 characters. The others occur only in strings, where an escape means the same. */
export function safeJson(json: object): string {
  return JSON.stringify(json).replace(unsafeInJson, (match) => `\\u${match.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
