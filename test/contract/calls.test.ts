import { expect } from 'chai';
import fc from 'fast-check';
import { placeCallSchema, validatePlaceCall } from '#contract/calls/calls.ts';
import { validate } from '#contract/validate.ts';
import { runs } from '../support/runs.ts';

/** Half of the texts are valid. The other half are at the limits of the rules for length, normal form and visible characters. */
const rightTexts = fc.constantFrom('a', 'Ada Lovelace', 'Jos\u00E9', 'order-4711', 'x'.repeat(64), 'Europe/Berlin');
const hostileTexts = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', ' ', '"', '\u00E9', '\u00A0', '\u00AD', '\u02FF', '\u0300', '\u0301', '\u0340'), maxLength: 4 }),
  fc.constantFrom('\t', '\n', '\0', '\x1F', '\x7F', '\x85', '\u200B', '\uFEFF', '\uD800', '\u{1F600}').map((unit) => `a${unit}b`),
  fc.constantFrom(65, 128, 129, 200, 201, 1_000, 1_001).map((length) => 'x'.repeat(length)),
  fc.constantFrom('', ' a', 'a ', '__proto__', 'constructor', '1', 'europe/berlin', 'Mars/Olympus', '+02:00'),
  fc.string({ unit: 'binary', maxLength: 8 }),
);
const texts = fc.oneof({ weight: 3, arbitrary: rightTexts }, { weight: 1, arbitrary: hostileTexts });
const phones = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('+493012345678', '+14155550123') },
  { weight: 1, arbitrary: fc.constantFrom('+4930', '493012345678', '+49 30 12345678', '+10000000000', '+493012345678\n') },
  {
    weight: 1,
    arbitrary: fc.string({ unit: fc.constantFrom('0', '1', '3', '4', '9'), minLength: 6, maxLength: 15 }).map((digits) => `+${digits}`),
  },
);
const instants = fc.constantFrom('2026-11-21T09:00:00.000Z', '2026-11-21T10:00:00Z', '2026-11-21', 'soon');

type Json = fc.Arbitrary<string>;
const json = (values: fc.Arbitrary<unknown>): Json => values.map((value) => JSON.stringify(value));
const strange = fc.oneof(fc.constantFrom('null', 'true', '0', '[]', '{}', '["a"]', '{"length":1}'), json(texts));

/**
 * Generates JSON objects, in which each field is included with the given probability in percent. Builds their text instead of an object,
 * because a name can be `__proto__`.
 */
function object(...fields: [name: fc.Arbitrary<string>, values: Json, percent: number][]): Json {
  const chosen = fields.map(([names, values, percent]) => {
    const usual = fc.tuple(names, fc.oneof({ weight: 40, arbitrary: values }, { weight: 1, arbitrary: strange }));
    return fc.oneof({ weight: percent, arbitrary: usual.map((field) => [field]) }, { weight: 100 - percent, arbitrary: fc.constant([]) });
  });
  return fc.tuple(...chosen).map((found) => `{${found.flat().map(([name, value]) => `${JSON.stringify(name)}:${value}`)}}`);
}

const contacts = object(
  [fc.constant('phone'), json(phones), 98],
  [fc.constant('name'), json(texts), 60],
  [fc.constant('timeZone'), json(texts), 10],
  [texts, strange, 3],
);
const variables = fc.oneof(
  { weight: 20, arbitrary: object([texts, json(texts), 80], [texts, json(texts), 30], [texts, json(texts), 10]) },
  {
    weight: 1,
    arbitrary: fc
      .integer({ min: 49, max: 51 })
      .map((count) => JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`v${n}`, ''])))),
  },
);
const bodies = object(
  [fc.constant('contact'), contacts, 98],
  [fc.constant('requestId'), json(fc.oneof(texts, fc.constantFrom('order-4711', 'a b', 'é'))), 30],
  [fc.constant('variables'), variables, 60],
  [fc.constant('notBefore'), json(instants), 10],
  [fc.constant('notAfter'), json(instants), 10],
  [texts, strange, 3],
);

const phone = '+493012345678';
const filled = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`v${n}`, '']));

describe('checking a call to place', () => {
  for (const [what, more] of [
    ['only a phone number', {}],
    ['a name of 200 characters', { contact: { phone, name: 'é'.repeat(200) } }],
    ['a time zone', { contact: { phone, timeZone: 'Europe/Berlin' } }],
    ['a request ID', { requestId: 'order-4711' }],
    ['empty variables', { variables: {} }],
    ['50 variables', { variables: filled(50) }],
    ['variables of 64 and 1,000 characters', { variables: { ['n'.repeat(64)]: 'v'.repeat(1_000), é: '' } }],
    ['all of these', { contact: { phone, name: 'Ada', timeZone: 'UTC' }, requestId: '1', variables: { a: '~' } }],
  ] as const) {
    it(`returns a body with ${what} as the same object, without running the schema, which would copy it`, () => {
      const body = { contact: { phone }, ...more };
      const validated = validatePlaceCall(body);
      expect(validated.ok && validated.data).to.equal(body);
      expect(validate(placeCallSchema, body)).to.deep.equal(validated);
    });
  }

  const wrongNames = ['', 'Ada ', 'A\u0301da', 'A\u007fda', 'A\u0085da', 'A\u200bda', 'A\u00adda', ['Ada'], 5, null];
  const wrongVariables = ['', 'a\u007fb', 'a\ud800b'].map((name) => `{${JSON.stringify(name)}:"a"}`);
  const wrongValues = ['a\tb', 'a\u0301', ['a'], 5, null, {}].map((value) => JSON.stringify({ a: value }));
  for (const body of [
    ...['null', '5', '"a"', '[]', '{}', '{"contact":null}', '{"contact":[]}', '{"contact":{}}', '{"contact":{"name":"Ada"}}'],
    ...['5', 'null', `["${phone}"]`].map((wrong) => `{"contact":{"phone":${wrong}}}`),
    ...wrongNames.map((name) => JSON.stringify({ contact: { phone, name } })),
    ...['', 5, ['UTC'], null].map((timeZone) => JSON.stringify({ contact: { phone, timeZone } })),
    ...[5, ['a'], null].map((requestId) => JSON.stringify({ contact: { phone }, requestId })),
    ...['null', '[]', '["a"]', '5', '"a"', ...wrongVariables, ...wrongValues].map(
      (variables) => `{"contact":{"phone":"${phone}"},"variables":${variables}}`,
    ),
    ...['"more":"a"', '"more":{}', '"__proto__":"a"', '"notBefore":"2026-11-21T09:00:00Z"'].map(
      (more) => `{"contact":{"phone":"${phone}"},${more}}`,
    ),
    ...['"more":"a"', `"more":"${phone}"`, '"__proto__":"a"'].map((more) => `{"contact":{"phone":"${phone}",${more}}}`),
  ]) {
    it(`agrees with the schema on ${body.length > 80 ? `${body.slice(0, 80)}… (${body.length})` : body}`, () => {
      const input: unknown = JSON.parse(body);
      expect(validatePlaceCall(input)).to.deep.equal(validate(placeCallSchema, input));
    });
  }

  it('agrees with the schema on random bodies', () => {
    fc.assert(
      fc.property(bodies, (body) => {
        const input: unknown = JSON.parse(body);
        expect(validatePlaceCall(input)).to.deep.equal(validate(placeCallSchema, input));
      }),
      runs(5_000),
    );
  });
});
