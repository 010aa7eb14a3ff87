import type { MetadataJson } from 'libphonenumber-js/core';
import { parsePhoneNumberFromString } from 'libphonenumber-js/min';
import metadata from 'libphonenumber-js/min/metadata';

/** Positions in the library's data about a country: see its METADATA.md. */
const at = { pattern: 2, nationalPrefix: 7, leadingDigits: 10, types: 11 } as const;

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
 * Whether a number fits the numbering plan of the first country with its country code, and doesn't begin with a possible national prefix.
 * The library accepts all of these numbers unchanged.
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

/** Returns the numbering plans by country code. Omits codes whose countries are distinguished only by leading digits. */
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
