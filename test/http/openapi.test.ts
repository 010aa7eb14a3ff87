import { expect } from 'chai';
import { openCore } from '../support/core.ts';
import { type Answer, answerErrors, ask, openapi, openapiText } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, onDemand, placeCall, signIn } from '../support/tenants.ts';

// `ask` compares the responses in all tests with the document. These tests cover the rest.
describe('the OpenAPI document', () => {
  const its = openOnce(() => openCore());
  let cookie: string;
  before(async () => {
    cookie = await signIn(its.core.url, 'ada@example.com');
  });

  for (const path of Object.keys(openapi.paths)) {
    it(`describes every method of ${path}`, async () => {
      const pathname = path.replace(/\{\w+\}/g, 'some');
      const answer = await ask('LINK', its.core.url + pathname, { cookie });
      expect(answer.status).to.equal(405);
      const allowed = String(answer.headers['allow']).toLowerCase().split(', ');
      expect(allowed.filter((method) => method !== 'head')).to.have.members(Object.keys(openapi.paths[path] ?? {}));
    });
  }

  it('is served on the management listener', async () => {
    const answer = await ask('GET', `${its.core.managementUrl}/openapi.json`);
    expect(answer.headers['content-type']).to.match(/^application\/json/);
    expect(answer.text).to.equal(openapiText);
  });

  describe("doesn't allow", () => {
    const falsified: [what: string, change: object, error: RegExp][] = [
      ['an undocumented status', { status: 200 }, /200 isn't described/],
      ['a body with a different shape', { text: '{}' }, /required property/],
      ['an undocumented field', { text: '{"outcome":"completed"}' }, /additional properties/],
      ['a different media type', { headers: { 'x-request-id': 'some', 'content-type': 'text/html' } }, /text\/html isn't described/],
      ['a response without X-Request-Id', { headers: { 'content-type': 'application/json' } }, /X-Request-Id is missing/],
      ["another response's header", { headers: { 'x-request-id': 'some', 'retry-after': '1' } }, /Retry-After isn't described/],
    ];
    let placed: Answer;
    before(async () => {
      const { keyValue } = await createKey(its.core.url, cookie);
      placed = await placeCall(its.core.url, its.tenants.campaign.id, keyValue);
    });
    for (const [what, change, error] of falsified)
      it(what, () => {
        expect(answerErrors('POST', onDemand(its.core.url, its.tenants.campaign.id), { ...placed, ...change }).join('\n')).to.match(error);
      });
  });
});
