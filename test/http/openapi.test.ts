import { expect } from 'chai';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { type Answer, answerErrors, ask, openapi, openapiText } from '../support/http.ts';
import { createKey, databaseWithTenants, onDemand, placeCall, signIn } from '../support/tenants.ts';

// `ask` compares the responses in all tests with the document. These tests cover the rest.
describe('the OpenAPI document', () => {
  let core: RunningCore;
  let cookie: string;
  let campaignId: string;

  before(async () => {
    const { database, tenants } = await databaseWithTenants('sqlite');
    core = await startCoreHere(database);
    campaignId = tenants.campaign.id;
    cookie = await signIn(core.url, 'ada@example.com');
  });
  after(() => core.close());

  for (const path of Object.keys(openapi.paths)) {
    it(`describes every method of ${path}`, async () => {
      const pathname = path.replace(/\{\w+\}/g, 'some');
      const answer = await ask('LINK', core.url + pathname, { cookie });
      expect(answer.status).to.equal(405);
      const allowed = String(answer.headers['allow']).toLowerCase().split(', ');
      expect(allowed.filter((method) => method !== 'head')).to.have.members(Object.keys(openapi.paths[path] ?? {}));
    });
  }

  it('is served on the management listener', async () => {
    const answer = await ask('GET', `${core.managementUrl}/openapi.json`);
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
      const { keyValue } = await createKey(core.url, cookie);
      placed = await placeCall(core.url, campaignId, keyValue);
    });
    for (const [what, change, error] of falsified)
      it(what, () => {
        expect(answerErrors('POST', onDemand(core.url, campaignId), { ...placed, ...change }).join('\n')).to.match(error);
      });
  });
});
