import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import full from 'libphonenumber-js/max/metadata';
import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js/min';
import metadata from 'libphonenumber-js/min/metadata';
import examples from 'libphonenumber-js/mobile/examples';
import { isPhoneNumber, isPlainNumber, readPhone } from '#contract/calls/phone.ts';
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

describe('the numbering plans', () => {
  it("are those of the documented version, and a release fails if they aren't current", () => {
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(readFileSync('core/docs/placing-calls.md', 'utf8')).to.contain(
      `The plans are those of libphonenumber-js ${dependencies['libphonenumber-js']}, published on `,
    );
    expect(readFileSync('scripts/release.ts', 'utf8')).to.contain("run('npm', ['outdated', 'libphonenumber-js'])");
  });
});

describe('a phone number', () => {
  it('is accepted if and only if the library accepts it, for random digits and for variations of real numbers', () => {
    const anyNumber = fc.tuple(code, digits(12)).map(([prefix, rest]) => `+${prefix}${rest}`);
    fc.assert(
      fc.property(fc.oneof(anyNumber, nearExample), (text) => isPhoneNumber(text) === isAccepted(text)),
      runs(8_000),
    );
  });

  it('is checked without the library for the example numbers of all but seven calling codes', () => {
    const codes = Object.entries(metadata.country_calling_codes);
    const asked = codes.filter(([code, [first]]) => !isPlainNumber(`+${code}${first && examples[first]}`)).map(([code]) => code);
    expect(asked).to.have.members(['7', '47', '54', '212', '290', '358', '599']);
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

type Owned = { country: string; code: string; national: string; phone: string };

function ofCountry(country: string, national: string): Owned {
  const code: string = full.countries[country as CountryCode]?.[0];
  return { country, code, national, phone: `+${code}${national}` };
}

/**
 * The types of numbers in each country, with numbers that have the pattern of their digits. Canada, for example, has types without a number.
 * Reading a pattern takes longer than making numbers from it.
 */
const numberTypes = Object.entries(full.countries).flatMap(([country, plan]) => {
  const types: ([pattern: string] | 0)[] = plan[11] || [];
  return types.flatMap((type) =>
    type === 0 || type[0] === '' ? [] : { country, numbers: fc.stringMatching(new RegExp(`^(?:${type[0]})$`)) },
  );
});
const ofAnyType = fc
  .constantFrom(...numberTypes)
  .chain(({ country, numbers }) => numbers.map((national) => ofCountry(country, national)))
  // Gabon's numbers once had seven digits. Written with the zero, they're numbers of today.
  .filter(({ phone, code, national }) => isPhoneNumber(phone) && !(code === '241' && national.length === 7));

const examplesOfCountries = Object.entries(examples).map(([country, national]) => ofCountry(country, national));

/** The ways in which people and programs write a number. They change digits only by rule. */
function toSpellings({ country, code, national, phone }: Owned) {
  const [, internationalPrefix = '', , , , nationalPrefix = ''] = full.countries[country as CountryCode] ?? [];
  const parsed = parsePhoneNumberFromString(phone);
  const separated = parsed?.formatInternational() ?? phone;
  return {
    whole: [phone, separated, separated.replaceAll(' ', '-'), `\u202A${separated.replaceAll(' ', '\u00A0')}\u202C`, `tel:${phone}`],
    usual: [parsed?.formatNational() ?? '', `00${code} ${national}`, `00${code}${national}`],
    rare: [
      ...[
        `${nationalPrefix || ''}${national}`,
        national,
        `${code}${national}`,
        separated.slice(1),
        separated.slice(1).replaceAll(' ', '.'),
      ],
      ...(nationalPrefix === '0' ? [`${code}(0)${national}`, `+${code} (0) ${national}`, `${code}0${national}`] : []),
      ...(nationalPrefix === '0' && national.length > 7 ? [`0${national} 0${national}`] : []),
      ...(/^\d+$/.test(internationalPrefix) ? [`${internationalPrefix}${code}${national}`] : []),
      ...[`${code}${national}.0`, `${separated} / ${separated}`, `${separated} ext. 5`],
    ],
  };
}

/** Reads all spellings. Fails if one is read as another number. @returns those that were refused */
function readAll(country: string, phone: string, spellings: readonly string[]): string[] {
  return spellings.filter((text) => {
    const reading = readPhone(text, { country, accept: 'valid' });
    if ('phone' in reading) expect(reading, `${text} (${country})`).to.deep.equal({ phone, isValid: true });
    return 'reason' in reading;
  });
}

describe('reading a phone number', () => {
  it("never makes another number of any country's numbers, however they're written in that country", () => {
    const neverWrong = (number: Owned) => {
      const { whole, usual, rare } = toSpellings(number);
      expect(readAll(number.country, number.phone, whole)).to.deep.equal([]);
      readAll(number.country, number.phone, [...usual, ...rare]);
    };
    for (const number of examplesOfCountries) neverWrong(number);
    fc.assert(fc.property(ofAnyType, neverWrong), runs(400));
  });

  it("never makes another number of a foreign one that lost its plus, if the country's numbers are written with a prefix", () => {
    const home = fc.constantFrom(...['DE', 'AT', 'CH', 'FR', 'GB', 'IE', 'NL', 'BE', 'SE', 'JP', 'AU']);
    const neverWrong = (country: string, { code, national, phone }: Owned) => {
      fc.pre(code !== ofCountry(country, '').code);
      readAll(country, phone, [`${code}${national}`, `${code} ${national}`]);
    };
    fc.assert(fc.property(home, ofAnyType, neverWrong), runs(600));
  });

  it("never makes another number of a foreign one of more than ten digits that lost its plus, even if the library doesn't know it", () => {
    // A valid number, or one with another length or another digit than those of today, such as +1 436 555 0123 or +225 07123456.
    const unknown = fc
      .tuple(ofAnyType, fc.nat(20), digit, fc.integer({ min: -2, max: 1 }))
      .map(([{ code, national }, place, other, longer]) => {
        const changed = national.slice(0, place) + other + national.slice(place + 1);
        return code + (longer < 0 ? changed.slice(0, longer) : changed.padEnd(changed.length + longer, other));
      });
    const neverWrong = (country: string, text: string) => {
      const { 0: code = '', 1: internationalPrefix = '', 5: nationalPrefix, 11: types } = full.countries[country as CountryCode] ?? [];
      const isMobile = Boolean(nationalPrefix && types?.[1]?.[0] && new RegExp(`^(?:${types[1][0]})$`).test(text));
      const isOwn = isMobile || new RegExp(`^(?:${code}|${nationalPrefix || code}|${internationalPrefix})`).test(text);
      if (text.length > 10 && !isOwn) readAll(country, `+${text}`, [text]);
    };
    const homes = Object.keys(full.countries);
    for (const text of ['14365550123', '447700900123', '5215512345678', '22507123456', '12125551234', '33199001234'])
      for (const country of homes) neverWrong(country, text);
    fc.assert(fc.property(fc.constantFrom(...homes), unknown, neverWrong), runs(1_500));
  });

  it('accepts the example number of nearly every country as usual there, after 00, and without its plus', () => {
    const refused = examplesOfCountries.flatMap((number) => {
      const usual = [...toSpellings(number).usual, `${number.code}${number.national}`];
      return readAll(number.country, number.phone, usual).map((text) => `${number.country} ${text}`);
    });
    // With some countries' prefixes for calls abroad, the digits after 00 are another number.
    const ambiguous = ['CO 0057 3211234567', 'CO 00573211234567', 'ID 0062 812345678', 'ID 0062812345678'];
    expect(refused).to.have.members([...ambiguous, 'DE 4915123456789', 'ID 62812345678', 'XK 38343201234']);
  });

  const accepted: [text: string, country: string | undefined, phone: string][] = [
    ['+353 86 123 4567', undefined, '+353861234567'],
    ['(+49) 0170 / 123 45-67', undefined, '+491701234567'],
    ['00353 86 123 4567', undefined, '+353861234567'],
    ['011 49 30 12345678', 'US', '+493012345678'],
    ['(212) 555-1234', 'US', '+12125551234'],
    ['1 212 555 1234', 'US', '+12125551234'],
    ['604 555 1234', 'CA', '+16045551234'],
    ['13012345678', 'CN', '+8613012345678'],
    ['011 61 412 345 678', 'ES', '+61412345678'],
    ['011 6834002', 'IT', '+390116834002'],
    ['8 (916) 123-45-67', 'RU', '+79161234567'],
    ['06 69812345', 'IT', '+390669812345'],
    ['+39 (0)6 69812345', 'IT', '+390669812345'],
    ['011 15 2345-6789', 'AR', '+5491123456789'],
    ['030 / 123 456-78', 'DE', '+493012345678'],
    ['493012345678', 'DE', '+493012345678'],
    ['49(0)1701234567', 'DE', '+491701234567'],
    ['0491 701234567', 'DE', '+49491701234567'],
    ['1701234567', 'DE', '+491701234567'],
    ['2079460958', 'GB', '+442079460958'],
    ['612345678', 'FR', '+33612345678'],
    ['030123456', 'DE', '+4930123456'],
    ['2125551234', 'US', '+12125551234'],
    ['3331234567', 'IT', '+393331234567'],
    ['91234567', 'SG', '+6591234567'],
    ['41 91234-5678', 'BR', '+5541912345678'],
    ['84951234567', 'RU', '+74951234567'],
    ['\u0660\u0661\u0667\u0660 \u06F1\u06F2\u06F3\uFF14\uFF15\uFF16\uFF17', 'DE', '+491701234567'],
    ['\u200E\uFF0B49\u00AD 170\u2011123\u202F4567\u2069', undefined, '+491701234567'],
    ["'01701234567", 'DE', '+491701234567'],
    ['\t+49 170 1234567\r\n', undefined, '+491701234567'],
  ];
  for (const [text, country, phone] of accepted) {
    it(`accepts ${JSON.stringify(text)}${country === undefined ? '' : ` in ${country}`}`, () =>
      expect(readPhone(text, { country, accept: 'valid' })).to.deep.equal({ phone, isValid: true }));
  }

  const noCountry = 'Must be a phone number in E.164 format, such as +493012345678.';
  const pair = 'Must be one phone number. This looks like two.';
  const extra = 'Must be one phone number, without an extension or other text.';
  const refused: [text: string, country: string | undefined, reason: string][] = [
    ['491701234567', 'DE', 'Write +49 170 1234567, or 0491 701234567.'],
    ['49 170 1234567', 'DE', 'Write +49 170 1234567, or 0491 701234567.'],
    ['011 43 664 123456', 'DE', 'Write +43 664 123456, or 1143664123456.'],
    ['0949 301 2345', 'MX', 'Write +49 30 12345, or 949 301 2345.'],
    ['436641234567', 'DE', 'Write +43 664 1234567, or 04366 41234567.'],
    ['6641234567', 'AT', 'Write +66 41 234 567, or 0664 1234567.'],
    // The library doesn't know these four numbers with a plus.
    ['14365550123', 'DE', 'Write +1 436 555 0123, or +49 14365550123.'],
    ['447700900123', 'DE', 'Write +44 7700 900123, or 04477 00900123.'],
    ['5215512345678', 'DE', 'Write +52 15512345678, or 0521 5512345678.'],
    ['22507123456', 'AT', 'Write +225 07123456, or 02250 7123456.'],
    ['14365550123', 'FR', 'Must be a valid phone number.'],
    ['12125551234', 'SG', 'Write +1 212 555 1234, or +65 1212 555 1234.'],
    ['33199001234', 'IT', 'Write +33 1 99 00 12 34, or +39 331 9900 1234.'],
    ['353861234567', undefined, noCountry],
    ['030 12345678', undefined, noCountry],
    ['030 12345678', 'XX', noCountry],
    ['+049 170 1234567', 'DE', 'Must be a valid phone number.'],
    ['12', 'DE', 'Must be a valid phone number.'],
    ['+14362345678', undefined, 'Must be a valid phone number.'],
    ['', 'DE', extra],
    ['030 12345678 ext. 5', 'DE', extra],
    ['030 12345678;ext=5', 'DE', extra],
    ['call 030 12345678', 'DE', extra],
    ['030 12345678, 030 12345679', 'DE', extra],
    ['030 12345678\n030 12345679', 'DE', extra],
    ['+49 30 12345678 +49 30 12345679', 'DE', extra],
    ['030 12345678(9)', 'DE', extra],
    ['030 123456 / 57', 'DE', pair],
    ['030/123456/030/123457', 'DE', pair],
    ['01 12345 01 54321', 'AT', pair],
    ['01 12345\u202801 54321', 'AT', pair],
    ['491701234567.0', 'DE', 'A spreadsheet saved this number as a decimal: "491701234567.0".'],
    ['4.91701E+11', 'DE', 'A spreadsheet rounded this long number to "4.91701E+11", so its last digits are lost.'],
    ['4,91701E11', undefined, 'A spreadsheet rounded this long number'],
  ];
  for (const [text, country, reason] of refused) {
    it(`refuses ${JSON.stringify(text)}${country === undefined ? '' : ` in ${country}`}`, () =>
      expect(readPhone(text, { country, accept: 'valid' }))
        .to.have.property('reason')
        .that.satisfies((actual: string) => actual.startsWith(reason)));
  }

  const notListed: [text: string, country: string, reason: string][] = [
    ['0600123456', 'PL', 'Write 600 123 456.'],
    ['+48 0600 123 456', 'DE', 'Write +48 600 123 456.'],
    ['01 55 1234 5678', 'MX', 'Write +52 15512345678.'],
    ['1 55 1234 5678', 'MX', 'Write +1 551 234 5678, or +52 15512345678.'],
    ['0913 123 4567', 'MX', 'Write +1 31234567, or 913 123 4567.'],
    ['0321 1234567', 'CO', 'Write +57 211234567, or 321 1234567.'],
    ['65 9123 4567', 'NO', 'Write +65 9123 4567, or +47 6591234567.'],
  ];
  for (const [text, country, reason] of notListed) {
    it(`refuses ${JSON.stringify(text)} in ${country} even if only the length has to be possible`, () =>
      expect(readPhone(text, { country, accept: 'possible' })).to.deep.equal({ reason }));
  }

  it('names only readings that have no other', () => {
    for (const text of ['491701234567', '436641234567', '6641234567']) {
      const reading = readPhone(text, { country: text.startsWith('6') ? 'AT' : 'DE', accept: 'valid' });
      const [, ...named] = 'reason' in reading ? (/^Write (.*), or (.*)\.$/.exec(reading.reason) ?? []) : [];
      for (const one of named) expect(readPhone(one, { country: 'DE', accept: 'valid' }), one).to.have.property('isValid', true);
    }
  });

  it('accepts numbers of other lengths than those of today, if only the length has to be possible', () => {
    const possible = ['+14362345678', '1 436 234 5678', '0052 1 55 1234 5678', '+5215512345678', '+22507123456', '+49 30 12345678'];
    expect(possible.map((text) => readPhone(text, { country: 'US', accept: 'possible' }))).to.deep.equal([
      { phone: '+14362345678', isValid: false },
      { phone: '+14362345678', isValid: false },
      { phone: '+5215512345678', isValid: false },
      { phone: '+5215512345678', isValid: false },
      { phone: '+22507123456', isValid: false },
      { phone: '+493012345678', isValid: true },
    ]);
    for (const text of ['+1212555', '+4930', '+999123456789', '12', '+4930123456789012'])
      expect(readPhone(text, { country: 'US', accept: 'possible' }), text).to.have.property('reason');
  });

  it('never lists a number that only has a possible length if the digits are a valid number written in another way', () => {
    const homes = ['IT', 'MX', 'SG', 'PL', 'ES', 'NO', 'AU', 'CI', 'CO'];
    const neverWrong = (country: string, { code, national, phone }: Owned) => {
      const extraZero = [
        `+${code}0${national}`,
        `00${code}0${national}`,
        ...(code === ofCountry(country, '').code ? [`0${national}`] : []),
      ];
      const spellings = [`${code}${national}`, `011${phone.slice(1)}`, ...(national.startsWith('0') ? [] : extraZero)];
      for (const text of phone.length > 10 ? spellings : []) {
        const reading = readPhone(text, { country, accept: 'possible' });
        if ('phone' in reading && !reading.isValid) expect(reading.phone, `${text} (${country})`).to.equal(phone);
      }
    };
    for (const country of homes) for (const number of examplesOfCountries) neverWrong(country, number);
    fc.assert(fc.property(fc.constantFrom(...homes), ofAnyType, neverWrong), runs(400));
  });
});
