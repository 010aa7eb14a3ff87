import { expect } from 'chai';
import { z } from 'zod';
import { paths, pathTo } from '#contract/paths.ts';
import { problemCode, problemType } from '#contract/problems.ts';
import { parseJson } from '#contract/text/json.ts';
import { validate } from '#contract/validate.ts';

const schema = z.strictObject({
  contact: z.strictObject({ phone: z.string().min(2, { error: 'Too short.' }) }),
  note: z.string().optional(),
});
const errorsOf = (input: unknown) => {
  const validated = validate(schema, input);
  return validated.ok ? [] : validated.errors;
};

describe('what is wrong with an input', () => {
  it('is nothing for a right one, which comes back as the schema reads it', () => {
    expect(validate(z.object({ name: z.string().trim() }), { name: ' a ', more: 1 })).to.deep.equal({ ok: true, data: { name: 'a' } });
  });

  it('names the field by its path', () => {
    expect(errorsOf({ contact: { phone: '1' } })).to.deep.equal([{ path: 'contact.phone', message: 'Too short.' }]);
  });

  it('tells a missing field from one of a wrong type', () => {
    expect(errorsOf({ contact: {} })).to.deep.equal([{ path: 'contact.phone', message: 'This field is required.' }]);
    expect(errorsOf({ contact: { phone: 1 } })[0]?.message).to.equal('Must be a string.');
  });

  it('names each unknown field, of a long name the beginning', () => {
    const long = 'x'.repeat(200);
    expect(errorsOf({ contact: { phone: '12', [long]: 1 }, b: 1, c: 1 })).to.deep.equal([
      { path: `contact.${'x'.repeat(100)}`, message: 'Unknown field.' },
      { path: 'b', message: 'Unknown field.' },
      { path: 'c', message: 'Unknown field.' },
    ]);
  });
});

describe('a text that may be JSON', () => {
  it('is read, or undefined', () => {
    expect([parseJson('{"a":1}'), parseJson('{')]).to.deep.equal([{ a: 1 }, undefined]);
  });
});

describe('a path', () => {
  it('has its parameters percent-encoded', () => {
    expect(pathTo(paths.cancelCallByRequest, { campaignId: 'c 1', requestId: 'a/b' })).to.equal(
      '/api/v1/campaigns/c%201/contacts/on-demand/by-request-id/a%2Fb',
    );
  });
});

describe("a problem's type", () => {
  it('ends with its code, and gives it back', () => {
    expect(problemType('too-large')).to.equal('urn:callkey:problems#too-large');
    expect(problemCode(problemType('too-large'))).to.equal('too-large');
    expect(problemCode('https://example.com/other#a#conflict')).to.equal('conflict');
  });

  for (const type of ['about:blank', 'urn:callkey:problems#', 'urn:callkey:problems#toString', 'urn:callkey:problems#nothing'])
    it(`has no code of ours in ${type}`, () => expect(problemCode(type)).to.equal(undefined));
});
