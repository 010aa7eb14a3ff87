import { expect } from 'chai';
import { problemSchema } from '#contract/problems.ts';
import { type CoreHarness, openCore, type RunningCore } from '../support/core.ts';
import { ask, overSocket, readCode } from '../support/http.ts';
import { createKey, onDemand, placeCall, signIn, somePhone, type Tenants } from '../support/tenants.ts';

describe('the key-authenticated endpoints', () => {
  let core: RunningCore;
  let close: CoreHarness['close'];
  let tenants: Tenants;
  let key: string;

  before(async () => {
    ({ core, tenants, close } = await openCore());
    key = (await createKey(core.url, await signIn(core.url, 'ada@example.com'))).keyValue;
  });
  after(() => close());

  const place = (body: object) => placeCall(core.url, tenants.campaign.id, key, body);
  const cancelUrl = (rest: string) => `${onDemand(core.url, tenants.campaign.id)}/${rest}`;

  describe("a campaign that the key doesn't have access to", () => {
    it('is refused with the same response as a missing campaign, byte for byte', async () => {
      const campaigns = [tenants.otherCampaign.id, tenants.siblingCampaign.id, 'no-such-campaign', '%00', 'a%2Fb', 'x'.repeat(500)];
      const answers = await Promise.all(campaigns.map((id) => placeCall(core.url, id, key)));
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
      expect([answers[0]?.status, answers[0] && readCode(answers[0])]).to.deep.equal([403, 'campaign-refused']);
    });

    it('is refused before the body is validated', async () => {
      const answer = await ask('POST', onDemand(core.url, tenants.otherCampaign.id), { key, raw: 'not json' });
      expect(readCode(answer)).to.equal('campaign-refused');
    });

    it('is refused for cancelling as well', async () => {
      const answer = await ask('DELETE', `${onDemand(core.url, tenants.otherCampaign.id)}/anything`, { key });
      expect(readCode(answer)).to.equal('campaign-refused');
    });
  });

  describe('the validation of input', () => {
    const contact = { phone: '+493012345678' };
    it('returns 422, naming the fields', async () => {
      const answer = await place({ contact: { ...contact, phone: '+49 30 12345678' }, priority: 1 });
      expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
      expect(problemSchema.parse(answer.json).errors?.map((error) => error.path)).to.have.members(['contact.phone', 'priority']);
      expect(answer.headers['content-type']).to.equal('application/problem+json');
    });

    it('accepts every character of a request ID, and names and values in any script', async () => {
      const requestId = `A9._~-:${'a'.repeat(121)}`;
      const answer = await place({ requestId, contact: { ...contact, name: '李小龍 🎉' }, variables: { größe: 'ß\n\t"\\' } });
      expect(answer.status, answer.text).to.equal(202);
      expect((await place({ requestId: '...', contact })).status).to.equal(202);
    });

    it('returns 400 for a request without a body, as for an empty body', async () => {
      const url = onDemand(core.url, tenants.campaign.id);
      const head = `POST ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\n`;
      const answer = await overSocket(core.url, `${head}Connection: close\r\n\r\n`);
      expect(answer).to.match(/^HTTP\/1.1 400 /);
      expect(answer).to.contain((await ask('POST', url, { key, raw: '' })).text);
    });

    it('returns 400 for bad percent-encoding', async () => {
      const answer = await ask('DELETE', cancelUrl('%zz'), { key });
      expect([answer.status, readCode(answer)]).to.deep.equal([400, 'malformed-request']);
    });

    it('fails only the invalid requests among many that arrive together', async () => {
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, n) => place(n % 3 === 0 ? { contact: { phone: 'x' } } : { contact: { phone: somePhone() } })),
      );
      expect(answers.map(({ status }) => status)).to.deep.equal(Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? 422 : 202)));
    });
  });
});
