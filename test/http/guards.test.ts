import { expect } from 'chai';
import { paths, pathTo } from '#contract/paths.ts';
import { sign } from '#contract/signature.ts';
import { fakeClock } from '../support/clock.ts';
import { type CoreHarness, openCore } from '../support/console-harness.ts';
import { startCoreHere } from '../support/core.ts';
import { type Ask, ask, codeOf } from '../support/http.ts';
import { signingSecret } from '../support/receiver.ts';
import { createKey, onDemand, signIn, somePhone } from '../support/tenants.ts';

describe('what guards every route', () => {
  let harness: CoreHarness;
  let cookie: string;
  let key: string;
  let endpoint: string;

  before(async () => {
    harness = await openCore();
    cookie = await signIn(harness.core.url, 'ada@example.com');
    key = (await createKey(harness.core.url, cookie)).keyValue;
    endpoint = onDemand(harness.core.url, harness.tenants.campaign.id);
  });
  after(() => harness.close());

  const call = () => JSON.stringify({ contact: { phone: somePhone() } });
  const place = (raw: string | Buffer, headers: Record<string, string> = {}) => ask('POST', endpoint, { key, raw, headers });
  /** A problem as its caller sees it. */
  const problemOf = async (asking: ReturnType<typeof ask>) => {
    const answer = await asking;
    return `${answer.status} ${codeOf(answer)}: ${answer.json['detail']}`;
  };
  const inConsole = (method: string, path: string, more: Ask = {}) => ask(method, harness.core.url + path, { cookie, ...more });

  for (const type of ['application/json', 'APPLICATION/JSON', 'application/json;charset=utf-8', 'application/json ; charset="UTF-8" ']) {
    it(`takes a body of ${type}`, async () => {
      expect((await place(call(), { 'Content-Type': type })).status).to.equal(202);
    });
  }

  for (const type of [
    '',
    'text/plain',
    'application/jsonx',
    'x-application/json',
    'application/json; charset=latin1',
    'application/json; charset=utf-8; a=b',
  ]) {
    it(`takes no body of ${JSON.stringify(type)}`, async () => {
      const refusal = '415 unsupported-media-type: Send JSON in UTF-8 with Content-Type: application/json.';
      expect(await problemOf(place(call(), { 'Content-Type': type }))).to.equal(refusal);
    });
  }

  it('takes a body as it is, and none that is compressed', async () => {
    expect((await place(call(), { 'Content-Encoding': 'identity' })).status).to.equal(202);
    const refusal = '415 unsupported-media-type: Send the body without Content-Encoding.';
    expect(await problemOf(place(call(), { 'Content-Encoding': 'gzip' }))).to.equal(refusal);
  });

  it('takes 64 KiB, and not a byte more', async () => {
    const body = call();
    expect((await place(body.padEnd(65_536))).status).to.equal(202);
    expect(await problemOf(place(body.padEnd(65_537)))).to.equal('413 too-large: Send at most 65536 bytes.');
  });

  for (const [what, raw] of [
    ['that is not JSON', '{'],
    ['that is not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['of nothing', ''],
  ] as const) {
    it(`takes no body ${what}`, async () => {
      expect(await problemOf(place(raw))).to.equal('400 malformed-request: The body is not JSON in UTF-8.');
    });
  }

  it('says where a body is wrong first, and names fifty places at most', async () => {
    const phone = 'Give a phone number in E.164 form, such as +493012345678.';
    expect(await problemOf(place('{"contact":{"phone":"1"}}'))).to.equal(`422 invalid: The body is wrong at contact.phone: ${phone}`);
    expect(await problemOf(place('[]'))).to.match(/^422 invalid: The body is wrong: \S/);
    const unknown = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`f${n}`, 1]));
    expect((await place(JSON.stringify({ ...JSON.parse(call()), ...unknown }))).json['errors']).to.have.length(50);
  });

  it('says where a query is wrong, and takes an empty parameter for none', async () => {
    const calls = pathTo(paths.calls, { id: harness.tenants.campaign.id });
    expect(await problemOf(inConsole('GET', `${calls}?state=ringing`))).to.match(
      /^400 malformed-request: The query is wrong at state: Give one of queued, /,
    );
    expect((await inConsole('GET', `${calls}?state=&search=`)).status).to.equal(200);
  });

  it('tells a signed-in user what is wrong with an address', async () => {
    expect(await problemOf(inConsole('GET', '/nowhere'))).to.equal('404 not-found: There is nothing here.');
    expect(await problemOf(inConsole('GET', '/console/%zz'))).to.equal('400 malformed-request: The address has bad percent-encoding.');
    expect(await problemOf(inConsole('GET', '/console/users?a=%zz'))).to.equal(
      '400 malformed-request: The address has bad percent-encoding.',
    );
    const wrongMethod = await inConsole('PUT', paths.apiKeys);
    expect([wrongMethod.json['detail'], wrongMethod.headers['allow']]).to.deep.equal(['Use HEAD, GET, POST.', 'HEAD, GET, POST']);
    const outcomes = await inConsole('GET', paths.outcomes);
    expect([outcomes.status, outcomes.headers['allow']]).to.deep.equal([405, 'POST']);
  });

  it('finds nothing by what cannot be an identifier', async () => {
    expect(await problemOf(inConsole('GET', '/console/api-keys/a%20b?timeZone=UTC'))).to.equal(
      '404 not-found: There is no such thing in your scope.',
    );
  });

  it('refuses what another site sends', async () => {
    const headers = { 'Sec-Fetch-Site': 'cross-site' };
    expect(await problemOf(inConsole('GET', paths.apiKeys, { headers }))).to.equal(
      '403 cross-site: This request was sent by another site.',
    );
    for (const site of ['same-origin', 'none'])
      expect((await inConsole('GET', paths.apiKeys, { headers: { 'Sec-Fetch-Site': site } })).status).to.equal(200);
    const { origin } = new URL(harness.core.url);
    expect((await inConsole('GET', paths.apiKeys, { headers: { Origin: origin } })).status).to.equal(200);
    expect((await inConsole('GET', paths.apiKeys, { headers: { Origin: origin.replace('http', 'https') } })).status).to.equal(403);
    // Fetch Metadata goes before Origin.
    expect(
      (await inConsole('GET', paths.apiKeys, { headers: { Origin: 'https://x.y', 'Sec-Fetch-Site': 'same-origin' } })).status,
    ).to.equal(200);
  });

  it('says what is wrong with an Idempotency-Key', async () => {
    const wrong = (detail: string) => `422 invalid: The header Idempotency-Key is wrong: ${detail}`;
    const form = wrong('Give 1 to 128 of A-Z a-z 0-9 . _ ~ - and :, bare or between double quotes.');
    for (const header of ['a b', '"a', 'a"', ''])
      expect(await problemOf(place(call(), { 'Idempotency-Key': header })), header).to.equal(form);
    const other = { ...JSON.parse(call()), requestId: 'r1' };
    const differs = wrong('It differs from requestId in the body. Give one of them, or the same value twice.');
    expect(await problemOf(place(JSON.stringify(other), { 'Idempotency-Key': 'r2' }))).to.equal(differs);
    expect((await place(JSON.stringify(other), { 'Idempotency-Key': '"r1"' })).json['requestId']).to.equal('r1');
  });
});

describe('the report of an outcome', () => {
  const clock = fakeClock();
  let harness: CoreHarness;
  let calls = 0;

  before(async () => {
    const dialer = { DIALER: 'webhook', DIALER_URL: 'http://127.0.0.1:9/', DIALER_SECRETS: signingSecret };
    harness = await openCore(clock, dialer);
  });
  after(() => harness.close());

  const stateOf = async (contactId: string) =>
    (await harness.direct.storage.database.read('calls').where({ contact_id: contactId }).first())?.state;
  /** A call that the provider has. */
  const handedOff = async () => {
    const contactId = `call-${++calls}`;
    const { campaign, account } = harness.tenants;
    await harness.direct.storage.database.write('calls').insert({
      ...{ contact_id: contactId, request_id: contactId, campaign_id: campaign.id, account_id: account.id, api_key_id: 'key' },
      ...{ state: 'dialing', handoff: 'taken', provider: 'webhook', phone: somePhone() },
      ...{ placed_at: clock.millis(), due_at: clock.millis() + 60_000 },
    });
    return contactId;
  };
  const report = (raw: string, { of = harness.core, signed = raw, headers = {} } = {}) =>
    ask('POST', of.url + paths.outcomes, {
      raw,
      headers: { ...sign('any', signed, signingSecret, clock.now().toUnixInteger()), ...headers },
    });
  const outcomeOf = (contactId: string) => JSON.stringify({ handoffId: contactId, state: 'busy' });

  it('is taken, if it is signed, and answered by its identifier alone', async () => {
    const contactId = await handedOff();
    const answer = await report(outcomeOf(contactId), { headers: { 'X-Request-Id': 'r-1' } });
    expect([answer.status, answer.text, answer.headers['x-request-id']]).to.deep.equal([204, '', 'r-1']);
    expect(await stateOf(contactId)).to.equal('busy');
  });

  it('gets the common 401 unless it is signed, whole and of a call that was handed off', async () => {
    const contactId = await handedOff();
    const raw = outcomeOf(contactId);
    const { text } = await ask('GET', `${harness.core.url}/nowhere`);
    for (const refused of [
      await report(raw, { signed: `${raw} ` }),
      await report(raw, { headers: { 'webhook-signature': '' } }),
      await report(raw.padEnd(65_537)),
      await report(outcomeOf('none')),
    ])
      expect([refused.status, refused.text]).to.deep.equal([401, text]);
    expect(await stateOf(contactId)).to.equal('dialing');
  });

  it('says what is wrong with it, to a provider that has signed it', async () => {
    const answer = await report('{"handoffId":"x","state":"ringing"}');
    expect([answer.status, codeOf(answer)]).to.deep.equal([422, 'invalid']);
    expect(answer.json['detail']).to.match(/^The body is wrong at state: /);
    expect((await report('{')).status).to.equal(400);
  });

  it('is refused by a core without a provider that reports', async () => {
    const contactId = await handedOff();
    const off = await startCoreHere(harness.database, { clock });
    const answer = await report(outcomeOf(contactId), { of: off });
    await off.close();
    expect([answer.status, await stateOf(contactId)]).to.deep.equal([401, 'dialing']);
  });
});
