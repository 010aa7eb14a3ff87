import { mock } from 'node:test';
import { expect } from 'chai';
import { z } from 'zod';
import { placeCallSchema, validatePlaceCall } from '#contract/calls/calls.ts';
import { daySchema } from '#contract/console/common.ts';
import { expirationSchema } from '#contract/expiry.ts';
import { problemCode, problemType } from '#contract/problems.ts';
import { pathTo, type Route } from '#contract/route.ts';
import { routes } from '#contract/routes.ts';
import { parseJson } from '#contract/text/json.ts';
import { validate } from '#contract/validate.ts';

/** The query and body of each route. */
const inputs = Object.entries<Route>(routes).flatMap(([name, { query, body }]) =>
  [query, body]
    .map((each) => (each instanceof z.ZodOptional ? each.unwrap() : each))
    .filter((each) => each instanceof z.ZodObject)
    .map((input) => ({ name, input })),
);
const messagesOf = (input: z.ZodType, fields: unknown) => {
  const validated = validate(input, fields);
  return validated.ok ? [] : validated.errors.map(({ path, message }) => `${path}: ${message}`);
};
const day = 'Must be a date in the format YYYY-MM-DD.';

const schema = z.strictObject({
  contact: z.strictObject({ phone: z.string().min(2, { error: 'Too short.' }) }),
  note: z.string().optional(),
});

describe('validating input', () => {
  it('returns valid input as the schema parsed it', () => {
    expect(validate(z.object({ name: z.string().trim() }), { name: ' a ', more: 1 })).to.deep.equal({ ok: true, data: { name: 'a' } });
  });

  it('names an invalid field by its path', () => {
    expect(messagesOf(schema, { contact: { phone: '1' } })).to.deep.equal(['contact.phone: Too short.']);
  });

  it('names a field once, even if its value breaks several rules', () => {
    const input = z.object({ day: daySchema, tags: z.array(z.string()).max(2) });
    expect(messagesOf(input, { day: 'today', tags: 'many' })).to.deep.equal([`day: ${day}`, 'tags: Must be an array.']);
  });

  it('distinguishes a missing field from a field with the wrong type', () => {
    expect(messagesOf(schema, { contact: {} })).to.deep.equal(['contact.phone: This field is required.']);
    expect(messagesOf(schema, { contact: { phone: 1 } })).to.deep.equal(['contact.phone: Must be a string.']);
  });

  it('says what to send instead of null or an empty list', () => {
    const messages = (call: object) => messagesOf(placeCallSchema, { contact: { phone: '+493012345678' }, ...call });
    expect(messages({ variables: [] })).to.deep.equal(['variables: Must be an object. If it has no entries, send {} or omit the field.']);
    const instead = "If you don't have a value, omit the field instead of sending null.";
    expect(messages({ variables: null })).to.deep.equal([`variables: Must be an object. ${instead}`]);
    expect(messages({ variables: { a: null }, requestId: null, notBefore: null })).to.have.members([
      ...['variables.a', 'requestId', 'notBefore'].map((path) => `${path}: Must be a string. ${instead}`),
    ]);
    expect(messages({ contact: { phone: '+493012345678', name: null } })).to.deep.equal([`contact.name: Must be a string. ${instead}`]);
  });

  it('says what each parameter of every route must be, never in the words of the library', () => {
    const values = ['x'.repeat(5_000), '\uD800', '\0', ['a', 'b'], 1e9, -1, 0.5, { a: 1 }, null];
    for (const { input } of inputs)
      for (const name of Object.keys(input.shape))
        for (const value of values)
          expect(messagesOf(input, { [name]: value }).filter((text) => /: (?:Too|Invalid)\b|[<>=]\d/.test(text))).to.deep.equal([]);
  });

  it('refuses text that is too long before it normalizes it, in every route, because normalizing takes quadratic time', () => {
    const marks = '\u0316\u0315'.repeat(1_900);
    const phone = '+493012345678';
    const fields = inputs.flatMap(({ name, input }) => Object.keys(input.shape).map((field) => ({ name, input, field })));
    const normalize = mock.method(String.prototype, 'normalize');
    try {
      const accepted = fields.filter(
        ({ input, field }) =>
          !messagesOf(input, { [field]: marks })
            .join('\n')
            .includes(`${field}: `),
      );
      // These are never normalized: versions and IDs are only compared, and a detail is cut.
      const taken = ['limitsVersion', 'version', 'version', 'version', 'version', 'handoffId', 'detail'];
      expect(accepted.map(({ field }) => field)).to.deep.equal(taken);
      for (const contact of [{ phone: marks }, { phone, name: marks }, { phone, timeZone: marks }])
        expect(validatePlaceCall({ contact })).to.have.property('ok', false);
      expect(normalize.mock.calls.filter((call) => String(call.this).length > 2_000)).to.deep.equal([]);
    } finally {
      normalize.mock.restore();
    }
  });

  it("refuses fields that a route doesn't have, and days and zones that don't exist, in every route", () => {
    const ranged: string[] = [];
    for (const { name, input } of inputs) {
      expect(messagesOf(input, { unknown: 1 }), name).to.include('unknown: Unknown field.');
      if ('timeZone' in input.shape)
        expect(messagesOf(input, { timeZone: 'Mars/Olympus' }).join(), name).to.contain('timeZone: Must be an IANA time zone');
      if (!('to' in input.shape)) continue;
      ranged.push(name);
      expect(messagesOf(input, { from: '2026-02-30', to: '2026-02-30' }), name).to.deep.equal([`from: ${day}`, `to: ${day}`]);
      expect(messagesOf(input, { from: '2026-11-09', to: '2026-11-08' }), name).to.deep.equal(['from: Must not be after "to".']);
    }
    expect(ranged).to.include.members(['listCalls', 'exportCalls', 'listActivity', 'exportActivity']);
  });

  it('says which numbers of years an expiration can have', () => {
    for (const years of [0, 6, 0.5, '1', null])
      expect(validate(expirationSchema, { kind: 'years', years })).to.deep.equal({
        ok: false,
        errors: [{ path: 'years', message: 'Must be a whole number from 1 to 5.' }],
      });
  });

  it('names each unknown field, shortening long names', () => {
    const long = 'x'.repeat(200);
    expect(messagesOf(schema, { contact: { phone: '12', [long]: 1 }, b: 1, c: 1 })).to.deep.equal(
      [`contact.${'x'.repeat(100)}`, 'b', 'c'].map((path) => `${path}: Unknown field.`),
    );
  });
});

describe('parsing text that may be JSON', () => {
  it("returns the value, or undefined if it isn't JSON", () => {
    expect([parseJson('{"a":1}'), parseJson('{')]).to.deep.equal([{ a: 1 }, undefined]);
  });
});

describe('building a path', () => {
  it('percent-encodes its parameters', () => {
    expect(pathTo(routes.cancelCallByRequest, { campaignId: 'c 1', requestId: 'a/b' })).to.equal(
      '/api/v1/campaigns/c%201/contacts/on-demand/by-request-id/a%2Fb',
    );
  });
});

describe("a problem's type", () => {
  it('ends with the problem code, and can be parsed back into it', () => {
    expect(problemType('too-large')).to.equal('urn:callkey:problems#too-large');
    expect(problemCode(problemType('too-large'))).to.equal('too-large');
  });

  for (const type of [
    'about:blank',
    'urn:callkey:problems#',
    'urn:callkey:problems#toString',
    'urn:callkey:problems#nothing',
    'https://example.com/problems#conflict',
  ])
    it(`doesn't contain a known code: ${type}`, () => expect(problemCode(type)).to.equal(undefined));
});
