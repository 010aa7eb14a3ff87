import type { MetadataJson } from 'libphonenumber-js/core';
// The smaller metadata doesn't have the types of most countries' numbers.
import full from 'libphonenumber-js/max/metadata';
import { isSupportedCountry, parsePhoneNumberFromString } from 'libphonenumber-js/min';
import metadata from 'libphonenumber-js/min/metadata';
import { toPlainPhone } from '../text/text.ts';

/** Positions in the library's data about a country: see its METADATA.md. `prefix` is meant if `nationalPrefix` is missing. */
const at = {
  ...{ code: 0, internationalPrefix: 1, pattern: 2, prefix: 5, nationalPrefix: 7, transform: 8, leadingDigits: 10, types: 11 },
} as const;

type Plan = { pattern: RegExp; nationalPrefix: RegExp; types: { pattern: RegExp; lengths: number[] | undefined }[] };

const plans = toPlans(metadata);

/**
 * Whether a text is an E.164 number: a plus sign and digits, with a valid country code and length. The library decides, but it takes half
 * as long as everything else for a call, so it's skipped for numbers that it's known to accept.
 *
 * Refuses numbers with a national prefix, such as +49 030 12345678, although the library accepts them: networks connect them to the number
 * without the prefix, which may be on a do-not-call list.
 */
export function isPhoneNumber(text: string): boolean {
  return /^\+[1-9]\d{1,14}$/.test(text) && (isPlainNumber(text) || isCanonical(text));
}

function isCanonical(text: string): boolean {
  const parsed = parsePhoneNumberFromString(text);
  return parsed?.isValid() === true && parsed.number === text;
}

/**
 * Whether a number fits the plan of the first country with its code, and doesn't begin with a possible national prefix. The library accepts
 * all of these unchanged.
 */
export function isPlainNumber(text: string): boolean {
  for (let end = 2; end <= 4; end++) {
    const plan = plans.get(text.slice(1, end));
    if (!plan) continue;
    const number = text.slice(end);
    if (!plan.pattern.test(number) || plan.nationalPrefix.test(number)) return false;
    return (
      plan.types.length === 0 ||
      plan.types.some(({ pattern, lengths }) => pattern.test(number) && (lengths?.includes(number.length) ?? true))
    );
  }
  return false;
}

/** Omits codes whose countries are distinguished only by leading digits. */
function toPlans({ countries, country_calling_codes }: MetadataJson): Map<string, Plan> {
  const plans = new Map<string, Plan>();
  for (const [code, [first]] of Object.entries(country_calling_codes)) {
    const country = first && countries[first];
    if (!country || country[at.leadingDigits]) continue;
    const types: [string, number[]?][] = (country[at.types] || []).filter((type: [string] | 0) => type !== 0);
    plans.set(code, {
      pattern: whole(country[at.pattern]),
      nationalPrefix: new RegExp(country[at.nationalPrefix] ? `^(?:${country[at.nationalPrefix]})` : '(?!)'),
      types: types.map(([pattern, lengths]) => ({ pattern: whole(pattern), lengths })),
    });
  }
  return plans;
}

function whole(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`);
}

export const notE164 = 'Must be a phone number in E.164 format, such as +493012345678.';

const notInternational = 'Must be a phone number with its country code, such as +493012345678, unless the country is specified.';

type PhoneReading = { phone: string; isValid: boolean } | { reason: string };

type PhoneOptions = {
  /** The ISO 3166-1 code of the country that numbers without a country code belong to. */
  country: string | undefined;
  /** `possible` also accepts numbers that the library doesn't know, because they're too old or too new. */
  accept: 'valid' | 'possible';
};

/**
 * Reads one phone number as people and spreadsheets write it. If the text can be read as two numbers, it's refused, because the wrong one
 * belongs to a stranger.
 *
 * @returns the number in E.164 format, or a sentence that says why the text was refused
 */
export function readPhone(text: string, options: PhoneOptions): PhoneReading {
  if (isPhoneNumber(text)) return { phone: text, isValid: true };
  // Without a country, `00` can only be what most countries dial before a country code.
  const written = options.country === undefined ? toPlainPhone(text).replace(/^\(?00\)? ?(?=[1-9])/, '+') : toPlainPhone(text);
  const reason = findFormProblem(written) ?? (isPair(written, options) ? 'Must be one phone number. This looks like two.' : null);
  return reason === null ? readWritten(written, options) : { reason };
}

function findFormProblem(written: string): string | null {
  const isRounded = /^\+?\d(?:[.,]\d{1,20})?E\+?\d{1,2}$/i.test(written);
  if (isRounded || /^\+?\d{1,20}[.,]0{1,20}$/.test(written)) {
    const what = isRounded ? 'rounded this long number to' : 'saved this number as a decimal:';
    const effect = isRounded ? ', so its last digits are lost' : '';
    return `A spreadsheet ${what} "${written}"${effect}. Format the column as text, enter the numbers again, and save the file.`;
  }
  if (!/^\(?\+?[ \d()./-]{0,50}\d$/.test(written)) return 'Must be one phone number, without an extension or other text.';
  return null;
}

/** Whether a text contains two numbers, such as `030 123456 030 123457`, or `030 123456/57`. */
function isPair(written: string, options: PhoneOptions): boolean {
  const isNumber = (part: string) => {
    const reading = findFormProblem(part) === null ? readWritten(part, options) : null;
    return reading !== null && 'phone' in reading && reading.phone.length > maxAreaCode;
  };
  return [...written.matchAll(/ *\/ *| +/g)].some(({ 0: separator, index }) => {
    const next = written.slice(index + separator.length);
    const isStart = separator.includes('/') || (!isWithPlus(written) && next.startsWith('0') && isNumber(next));
    return isStart && isNumber(written.slice(0, index));
  });
}

/** The maximum length of what's before the slash in one number, such as +4934291 for `034291/12345`. */
const maxAreaCode = '+4934291'.length;

function readWritten(written: string, { country, accept }: PhoneOptions): PhoneReading {
  const dialing = country === undefined ? undefined : getDialing(country);
  const { international, national } = findCandidates(written, dialing);
  const valid = distinct([...international.map(toValid), ...national.filter(isPhoneNumber)]);
  const unknown = international.length > 0 ? international : national;
  const mustBeValid = accept === 'valid';
  const phones = valid.length > 0 || mustBeValid ? valid : distinct(unknown.map(toPossible));
  const digits = toDigits(written);
  // The zero before a country's own number can also begin a longer prefix: Mexico has dialed 09 before foreign numbers, and Colombia's 03
  // chooses a phone company.
  const hasZero = dialing && phones.length > 0 && (valid.length === 0 || international.length > 0) && /^0[1-9]/.test(digits);
  const own = hasZero ? toValid(`+${dialing.code}${digits.slice(1)}`) : null;
  const meant = valid.length > 0 ? valid : phones.map((phone) => withoutZero(phone) ?? phone);
  // Spreadsheets drop the plus sign, and also the zero before an area code. So digits without either can be a foreign number, unless they're
  // written as usual in their country. Up to ten digits can only be a valid one, because most national numbers have that length. More can be
  // any number with a possible length: few countries' own numbers are as long, and the library doesn't know all foreign ones.
  const canLackPlus = dialing && !isWithPlus(written) && !digits.startsWith('0') && !valid.some((phone) => isUsual(phone, digits, dialing));
  const isLong = digits.length > maxNational && meant.length > 0;
  const withPlus = canLackPlus ? (toValid(`+${digits}`) ?? (isLong ? toPossible(`+${digits}`) : null)) : null;
  const readings = distinct([withPlus, ...meant, own]);
  const [phone] = phones;
  if (phone !== undefined && readings.length === 1 && readings[0] === phone) return { phone, isValid: valid.length > 0 };
  if (readings.length > 0) return { reason: `Write ${readings.map((reading) => format(reading, digits, dialing)).join(', or ')}.` };
  if (!dialing && international.length === 0) return { reason: mustBeValid ? notE164 : notInternational };
  return { reason: `Must be a ${mustBeValid ? 'valid phone number' : 'phone number with a possible length'}.` };
}

/** @property transform builds a number from the groups of its national prefix @property mobile matches mobile numbers without a prefix */
type Dialing = { code: string; international: RegExp[]; hasPrefix: boolean; national: RegExp; transform: string; mobile: RegExp };

const dialings = new Map<string, Dialing>();

function getDialing(country: string): Dialing | undefined {
  const known = dialings.get(country);
  if (known || !isSupportedCountry(country)) return known;
  const data = metadata.countries[country];
  if (!data) return undefined;
  const [, mobile]: ([pattern: string] | 0)[] = full.countries[country]?.[at.types] || [];
  const dialing = {
    code: data[at.code],
    // North American programs write 011 in every country. No country's numbers have ten digits after such an area code.
    international: [/^00/, /^011(?=\d{10})/, new RegExp(`^(?:${data[at.internationalPrefix]})`)],
    hasPrefix: Boolean(data[at.prefix]),
    national: new RegExp(`^(?:${data[at.nationalPrefix] || data[at.prefix] || ''})`),
    transform: data[at.transform] || '',
    mobile: whole((mobile || ['(?!)'])[0]),
  };
  dialings.set(country, dialing);
  return dialing;
}

/** Returns the numbers that a text can stand for. Most of them don't exist. */
function findCandidates(written: string, dialing: Dialing | undefined): { international: string[]; national: string[] } {
  const prefixes = isWithPlus(written) ? [/^/] : (dialing?.international ?? [/^00/]);
  const toInternational = (digits: string) => prefixes.filter((prefix) => prefix.test(digits)).map((prefix) => digits.replace(prefix, '+'));
  const ownCode = dialing?.code ?? '';
  // In +49 (0)30, the zero is dialed only without the country code. In Italy, it's part of the number.
  const [, before, after] = /^(.*?\d.*?)\( *0 *\)(.*)$/.exec(written) ?? [];
  if (before !== undefined && after !== undefined) {
    const start = toDigits(before);
    const codes = [...toInternational(start), ...(start === ownCode ? [`+${start}`] : [])];
    const known = codes.filter((code) => Object.hasOwn(metadata.country_calling_codes, code.slice(1)));
    return { international: known.flatMap((code) => withOptionalPrefix(code, `0${toDigits(after)}`, toDigits(after))), national: [] };
  }
  const digits = toDigits(written);
  const international = toInternational(digits);
  if (isWithPlus(written) || !dialing) return { international, national: [] };
  const groups = dialing.national.exec(digits)?.slice(1) ?? [];
  const number = digits.replace(dialing.national, groups.at(-1) === undefined ? '' : dialing.transform);
  const withoutPlus = digits.startsWith(ownCode) ? [toValid(`+${digits}`) ?? `+${digits}`] : [];
  return { international, national: [...withoutPlus, ...withOptionalPrefix(`+${ownCode}`, digits, number)] };
}

function isWithPlus(written: string): boolean {
  return written.includes('+');
}

/** The digits of a national prefix can also be part of the number. */
function withOptionalPrefix(code: string, digits: string, number: string): string[] {
  return isPhoneNumber(code + digits) ? [code + digits, code + number] : [code + number];
}

function toValid(candidate: string): string | null {
  if (isPhoneNumber(candidate)) return candidate;
  const parsed = parsePhoneNumberFromString(candidate);
  return parsed && isPhoneNumber(parsed.number) ? parsed.number : null;
}

/** Accepts two digits more or fewer than the country's numbers have, because that's how many a country adds to its numbers or removes. */
function toPossible(candidate: string): string | null {
  if (!/^\+[1-9]\d{6,14}$/.test(candidate)) return null;
  const lengths = [candidate, `${candidate}0`, `${candidate}00`, candidate.slice(0, -1), candidate.slice(0, -2)];
  return lengths.some((text) => parsePhoneNumberFromString(text)?.isPossible()) ? candidate : null;
}

/** Few countries' numbers begin with zero. */
function withoutZero(phone: string): string | null {
  const code = `+${parsePhoneNumberFromString(phone)?.countryCallingCode}`;
  return phone.startsWith(`${code}0`) ? toPossible(code + phone.slice(code.length).replace(/^0+/, '')) : null;
}

/** Whether digits are a number as it's usually written in its country. The library doesn't know that for numbers that it can't format. */
function isUsual(phone: string, digits: string, { hasPrefix, mobile }: Dialing): boolean {
  const parsed = parsePhoneNumberFromString(phone);
  if (digits.length > maxNational && digits === parsed?.nationalNumber && !(hasPrefix && mobile.test(digits))) return false;
  return [true, false].some((nationalPrefix) => {
    const text = parsed?.format('NATIONAL', { nationalPrefix }) ?? '';
    return toDigits(text) === digits && !(hasPrefix && text === digits);
  });
}

/** The maximum length of nearly all countries' numbers without a country code and prefix. China's and Brazil's mobile numbers are longer. */
const maxNational = 10;

/** Formats one meaning of digits so that it has no other. */
function format(phone: string, digits: string, dialing: Dialing | undefined): string {
  const parsed = parsePhoneNumberFromString(phone);
  const national = parsed?.formatNational() ?? phone;
  const isOwn =
    isPhoneNumber(phone) && parsed?.countryCallingCode === dialing?.code && phone !== `+${digits}` && toDigits(national) !== digits;
  return isOwn ? national : (parsed?.formatInternational() ?? phone);
}

function distinct(phones: readonly (string | null)[]): string[] {
  return [...new Set(phones)].filter((phone) => phone !== null);
}

function toDigits(text: string): string {
  return text.replace(/\D/g, '');
}
