import { limits } from '#contract/limits.ts';
import { foldText } from '#contract/text/text.ts';
import type { User } from '../model.ts';
import type { Ports } from '../ports.ts';
import { invalidField } from '../problem.ts';

/** Names as short as this are part of many words: "Ada" is in "Canada". */
const shortName = 3;

/**
 * Checks every password that isn't generated (NIST SP 800-63B §3.1.1.2). Its schema checks the length, and which characters it contains
 * doesn't matter.
 *
 * @param path the field that it was entered in
 * @throws Problem `invalid`
 */
export async function requireGoodPassword({ serverName }: Ports, { email }: Pick<User, 'email'>, password: string, path: string) {
  const folded = foldText(password);
  const [user = '', host = ''] = email.split('@');
  if (mentions(folded, email) || [user, host, ...labels(host)].some((each) => mentions(folded, each) && isShortWithout(folded, each)))
    throw invalidField(path, 'The password must not contain the email address, because attackers try that first.');
  if (['callkey', serverName, ...labels(serverName)].some((each) => mentions(folded, each)))
    throw invalidField(path, "The password must not contain the server's name, because attackers try that first.");
  if (isPattern(folded) || (await isCommon(folded)))
    throw invalidField(path, 'The password must not be a common one or a simple pattern, because attackers try these first.');
}

function compact(text: string): string {
  return foldText(text).replace(/[^\p{L}\p{N}]/gu, '');
}

function mentions(password: string, name: string): boolean {
  const word = compact(name);
  return word.length > shortName && compact(password).includes(word);
}

/** Whether someone who knows a name has only a short rest to guess. "ada" in front of four random words does no harm. */
function isShortWithout(password: string, name: string): boolean {
  return compact(password).replaceAll(compact(name), '').length < limits.passwordMin;
}

/** The parts of a host name that tell whose it is: `example` of `calls.example.com`. */
function labels(host: string): string[] {
  return host
    .split('.')
    .slice(0, -1)
    .filter((label) => label.length > shortName && /\p{L}/u.test(label));
}

const [year, month, day] = ['(?:(?:19|20)?\\d\\d)', '(?:0?[1-9]|1[0-2])', '(?:0?[1-9]|[12]\\d|3[01])'];
const orders = [
  [year, month, day],
  [day, month, year],
  [month, day, year],
];
/** A day with a year, with or without something between the numbers. */
const date = new RegExp(`^(?:${orders.map((parts) => parts.join('[^\\p{L}\\p{N}]*')).join('|')})$`, 'u');

/** Whether a password is a date, repeats a few characters, or consists of at most two runs, such as "1234abcd". */
function isPattern(password: string): boolean {
  if (date.test(password)) return true;
  const codes = Array.from(password, (character) => character.codePointAt(0) ?? 0);
  const runs = codes.filter((code, index) => index === 0 || Math.abs(code - (codes[index - 1] ?? 0)) > 1);
  return runs.length <= 2 || [2, 3, 4].some((size) => codes.every((code, index) => index < size || code === codes[index - size]));
}

let commonPasswords: ReadonlySet<string> | undefined;

/** Whether a password is common, also with digits and signs around it. */
async function isCommon(password: string): Promise<boolean> {
  // Loaded only here, because it's large and rarely needed.
  commonPasswords ??= new Set((await import('@zxcvbn-ts/language-common')).dictionary['passwords-common']);
  const word = password.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '');
  return commonPasswords.has(password) || (2 * word.length >= password.length && commonPasswords.has(word));
}
