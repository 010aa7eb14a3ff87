import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { sign } from '#contract/calls/signature.ts';
import { routes } from '#contract/routes.ts';
import { instant } from '../../core/domain/instant.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore, startCoreHere } from '../support/core.ts';
import { ask, readCode, textAt } from '../support/http.ts';
import { signingSecret } from '../support/provider.ts';
import { openOnce } from '../support/suites.ts';
import { insertCalls } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('an outcome report', () => {
  const clock = fakeClock();
  const environment = { DIALER: 'webhook', DIALER_URL: 'http://127.0.0.1:9/', DIALER_SECRETS: signingSecret };
  const harness = openOnce(() => openCore({ clock, environment }));
  let calls = 0;

  const readCall = async (contactId: string) => harness.direct.storage.database.read('calls').where({ contact_id: contactId }).first();
  const readState = async (contactId: string) => (await readCall(contactId))?.state;
  /** Adds a call that the provider has accepted. @returns its ID */
  const handedOff = async () => {
    const contactId = `call-${++calls}`;
    const taken = { state: 'dialing', handoff: 'taken', provider: 'webhook', due_at: instant(clock.now() + 60_000) } as const;
    await insertCalls(harness.direct, harness.tenants, [contactId], taken);
    return contactId;
  };
  const report = (raw: string, { of = harness.core, signed = raw, headers = {} } = {}) =>
    ask('POST', of.url + routes.reportOutcome.path, {
      raw,
      headers: { ...sign('any', signed, signingSecret, Math.floor(clock.now() / 1_000)), ...headers },
    });
  const formatOutcome = (contactId: string) => JSON.stringify({ handoffId: contactId, state: 'busy' });

  it("is accepted if it's signed, and gets an empty 204 with its request ID", async () => {
    const contactId = await handedOff();
    const answer = await report(formatOutcome(contactId), { headers: { 'X-Request-Id': 'r-1' } });
    expect([answer.status, answer.text, answer.headers['x-request-id']]).to.deep.equal([204, '', 'r-1']);
    expect(await readState(contactId)).to.equal('busy');
  });

  it("gets the common 401 unless it's signed and complete", async () => {
    const contactId = await handedOff();
    const raw = formatOutcome(contactId);
    const { text } = await ask('GET', `${harness.core.url}/nowhere`);
    for (const refused of [
      await report(raw, { signed: `${raw} ` }),
      await report(raw, { headers: { 'webhook-signature': '' } }),
      await report(raw.padEnd(65_537), { signed: raw }),
      await report(raw.padEnd(1_000_000), { headers: { 'webhook-timestamp': '1' } }),
    ])
      expect([refused.status, refused.text]).to.deep.equal([401, text]);
    expect(await readState(contactId)).to.equal('dialing');
  });

  it("gets a 404 for a hand-off that doesn't or can't exist, so that the provider stops repeating it", async () => {
    for (const id of ['none', '', 'not an ID', 'x'.repeat(65), '\0'])
      expect(readCode(await report(formatOutcome(id))), id).to.equal('not-found');
  });

  it('gets a 413 if it has more than 64 KiB, but only if it is signed', async () => {
    const contactId = await handedOff();
    for (const length of [65_537, 1_000_000]) {
      const answer = await report(formatOutcome(contactId).padEnd(length), { headers: { 'X-Request-Id': 'r-1' } });
      expect([answer.status, readCode(answer), answer.headers['x-request-id']]).to.deep.equal([413, 'too-large', 'r-1']);
    }
    expect(await readState(contactId)).to.equal('dialing');
  });

  it('can have a fraction of a second, which is rounded, and a detail that is too long, which is cut between characters', async () => {
    for (const [durationSeconds, seconds] of [
      [62.5, 63],
      [0.4, 0],
      [86_400, 86_400],
    ] as const) {
      const handoffId = await handedOff();
      const outcome = { handoffId, state: 'completed', durationSeconds, detail: `${'x'.repeat(499)}\u{1F600}\u{1F600}` };
      expect((await report(JSON.stringify(outcome))).status).to.equal(204);
      expect(await readCall(handoffId)).to.include({ duration_seconds: seconds, detail: `${'x'.repeat(499)}\u{1F600}` });
    }
  });

  it('is stored with the current time if it has no end time, or one in the future', async () => {
    for (const endedAt of [{}, { endedAt: new Date(clock.now() + 1_000).toISOString() }]) {
      const handoffId = await handedOff();
      expect((await report(JSON.stringify({ handoffId, state: 'busy', ...endedAt }))).status).to.equal(204);
      expect(await readCall(handoffId)).to.include({ ended_at: clock.now() });
    }
  });

  it("gets a response that says what is wrong, but only if it's signed", async () => {
    const answer = await report('{"handoffId":"x","state":"ringing"}');
    expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
    expect(answer.json['detail']).to.match(/^Invalid body at state: /);
    expect((await report('{')).status).to.equal(400);
  });

  describe('of more than 8 KiB', () => {
    const detailed = JSON.stringify({ handoffId: 'x', state: 'ringing', detail: 'x'.repeat(10_000) });

    it("is read, but only if it's signed", async () => {
      const answer = await report(detailed);
      expect([answer.status, textAt(answer, 'detail').slice(0, 22)]).to.deep.equal([422, 'Invalid body at state:']);
      expect((await report(detailed, { signed: `${detailed} ` })).status).to.equal(401);
      const contactId = await handedOff();
      expect((await report(formatOutcome(contactId).padEnd(65_536))).status).to.equal(204);
    });

    it('has to be repeated if a hundred others are arriving, but shorter ones are still accepted', async () => {
      const { port } = new URL(harness.core.url);
      const head = `POST ${routes.reportOutcome.path} HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n`;
      const slow: Socket[] = [];
      const sendHead = () => {
        const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
        slow.push(socket);
        socket.write(head);
      };
      for (let n = 0; n < 100; n++) sendHead();
      // A report that arrives while a probe is being read finds no room, and isn't counted. So each probe adds one.
      await until(async () => {
        sendHead();
        return (await report(detailed)).status === 503;
      });
      const { status, headers } = await report(detailed);
      expect([status, headers['retry-after']]).to.deep.equal([503, '2']);
      expect((await report(detailed, { signed: `${detailed} ` })).status).to.equal(401);
      expect((await report(formatOutcome(await handedOff()))).status).to.equal(204);
      for (const socket of slow) socket.destroy();
      await until(async () => (await report(detailed)).status === 422);
    });
  });

  it("is refused by a core whose provider doesn't report outcomes", async () => {
    const contactId = await handedOff();
    const off = await startCoreHere(harness.database, { clock });
    const answer = await report(formatOutcome(contactId), { of: off });
    await off.close();
    expect([answer.status, await readState(contactId)]).to.deep.equal([401, 'dialing']);
  });
});
