import { expect } from 'chai';
import fc from 'fast-check';
import { parsePhoneNumberFromString } from 'libphonenumber-js/min';
import metadata from 'libphonenumber-js/min/metadata';
import examples from 'libphonenumber-js/mobile/examples';
import { isPhoneNumber, isPlainNumber } from '#contract/calls/phone.ts';
import { runs } from '../support/runs.ts';

/** Returns the library's result for text in E.164 form. The library writes each valid number in only one way. */
function isAccepted(text: string): boolean {
  const parsed = parsePhoneNumberFromString(text);
  return /^\+[1-9]\d{1,14}$/.test(text) && parsed?.isValid() === true && parsed.number === text;
}

const digit = fc.constantFrom(...'0123456789');
const code = fc.constantFrom(...Object.keys(metadata.country_calling_codes));
const digits = (max: number) => fc.string({ unit: digit, minLength: 0, maxLength: max });

/** Numbers close to real ones: an example with one digit changed, and sometimes extra digits before or after it. */
const nearExample = fc
  .tuple(fc.constantFrom(...Object.entries(examples)), digits(1), digits(2), fc.nat(20), digit)
  .map(([[country, example], before, after, place, other]) => {
    const at = place % example.length;
    const callingCode = metadata.countries[country as keyof typeof metadata.countries]?.[0] ?? '';
    return `+${callingCode}${before}${example.slice(0, at)}${other}${example.slice(at + 1)}${after}`;
  });

describe('a phone number', () => {
  it('is accepted if and only if the library accepts it, for random digits', () => {
    const anyNumber = fc.tuple(code, digits(12)).map(([prefix, rest]) => `+${prefix}${rest}`);
    fc.assert(
      fc.property(anyNumber, (text) => isPhoneNumber(text) === isAccepted(text)),
      runs(20_000),
    );
  });

  it('is accepted if and only if the library accepts it, for variations of real numbers', () => {
    fc.assert(
      fc.property(nearExample, (text) => isPhoneNumber(text) === isAccepted(text)),
      runs(20_000),
    );
  });

  it('is checked without the library for the example numbers of all but seven calling codes', () => {
    const codes = Object.entries(metadata.country_calling_codes);
    const asked = codes.filter(([code, [first]]) => !isPlainNumber(`+${code}${first && examples[first]}`)).map(([code]) => code);
    expect(asked).to.have.members(['7', '47', '54', '212', '290', '358', '599']);
  });

  it('is accepted for the example number of every country', () => {
    for (const [country, example] of Object.entries(examples)) {
      const text = `+${metadata.countries[country as keyof typeof metadata.countries]?.[0]}${example}`;
      expect(isPhoneNumber(text), text).to.equal(true);
    }
  });

  for (const text of [
    '',
    '+',
    '493012345678',
    '+49 30 12345678',
    '+0123456789',
    '+4930',
    '+49301234567890123',
    '+999123456789',
    'tel:+493012345678',
    ' +493012345678',
    '(+493012345678',
    '00+493012345678',
    '+493012345678 ',
    // These three have a national prefix, which networks ignore.
    '+4903012345678',
    '+112125550142',
    '+810312345678',
  ]) {
    it(`can't be ${JSON.stringify(text)}`, () => {
      expect(isPhoneNumber(text)).to.equal(false);
    });
  }
});
