import { expect } from 'chai';
import type { RunningCore } from '../support/core.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { type Answer, ask } from '../support/http.ts';
import { createKey, onDemand, type openDirect, placeCall, signIn, type Tenants } from '../support/tenants.ts';

const uuid = /^[0-9a-f-]{36}$/;

describe('every response', () => {
  let core: RunningCore;
  let close: CoreHarness['close'];
  let direct: Awaited<ReturnType<typeof openDirect>>;
  let tenants: Tenants;
  let cookie: string;
  let key: string;

  before(async () => {
    ({ core, direct, tenants, close } = await openCore());
    cookie = await signIn(core.url, 'ada@example.com');
    ({ keyValue: key } = await createKey(core.url, cookie));
  });
  after(() => close());

  const calls = () => onDemand(core.url, tenants.campaign.id);
  const session = (headers: Record<string, string> = {}) => ask('GET', `${core.url}/console/session`, { cookie, headers });
  const getId = ({ headers }: Answer) => headers['x-request-id'];

  describe('has an X-Request-Id', () => {
    it('of its own, which is different each time', async () => {
      const [one, other] = [getId(await session()), getId(await session())];
      expect([one, other].every((id) => uuid.test(String(id)))).to.equal(true);
      expect(one).not.to.equal(other);
    });

    it('sent by the client', async () => {
      expect(getId(await session({ 'X-Request-Id': 'my.id_1~2:3-4' }))).to.equal('my.id_1~2:3-4');
    });

    for (const [what, sent] of [
      ['is empty', ''],
      ['is too long', 'x'.repeat(129)],
      ['has invalid characters', 'a b'],
      ['would forge a log line', 'a"}'],
    ] as const) {
      it(`of its own if the client's ${what}`, async () => {
        expect(getId(await session({ 'X-Request-Id': sent }))).to.match(uuid);
      });
    }

    it('when a call is placed, replayed, cancelled and refused', async () => {
      const headers = { 'X-Request-Id': 'seen-again' };
      const body = { requestId: 'r1', contact: { phone: '+493012345678' } };
      const answers = [
        await ask('POST', calls(), { key, body, headers }),
        await ask('POST', calls(), { key, body, headers }),
        await ask('POST', calls(), { key, body: {}, headers }),
        await ask('DELETE', `${calls()}/by-request-id/r1`, { key, headers }),
        await ask('DELETE', `${calls()}/by-request-id/none`, { key, headers }),
      ];
      expect(answers.map((answer) => [answer.status, getId(answer)])).to.deep.equal(
        [202, 202, 422, 200, 404].map((status) => [status, 'seen-again']),
      );
    });

    it("unless it's the common 401", async () => {
      const refused = await ask('GET', `${core.url}/nothing`, { headers: { 'X-Request-Id': 'mine' } });
      expect([refused.status, getId(refused)]).to.deep.equal([401, undefined]);
    });

    it('that is logged as requestId', async () => {
      await session({ 'X-Request-Id': 'look-me-up' });
      expect(core.log.filter(({ requestId }) => requestId === 'look-me-up').map(({ msg }) => msg)).to.deep.equal(['request']);
    });
  });

  describe("is logged with the client's traceparent", () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-00ad6b7169203331-01';

    it('for both a request and a failure', async () => {
      await session({ 'X-Request-Id': 'traced', traceparent });
      await direct.storage.database.write.schema.renameTable('sessions', 'sessions_away');
      await session({ 'X-Request-Id': 'traced', traceparent });
      await direct.storage.database.write.schema.renameTable('sessions_away', 'sessions');
      const lines = core.log.filter(({ requestId }) => requestId === 'traced');
      expect(lines.map((line) => [line['msg'], line['traceparent']])).to.deep.equal([
        ['request', traceparent],
        ['request failed', traceparent],
        ['request', traceparent],
      ]);
    });

    for (const [what, sent] of [
      ['has a different form', 'canary'],
      ['has a prefix', `x${traceparent}`],
      ['has no trace ID', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
      ['has no span ID', `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`],
      ['has an unknown version', 'ff-0af7651916cd43dd8448eb211c80319c-00ad6b7169203331-01'],
    ] as const) {
      it(`unless it ${what}`, async () => {
        await session({ 'X-Request-Id': what.replaceAll(' ', '-'), traceparent: sent });
        const lines = core.log.filter(({ requestId }) => requestId === what.replaceAll(' ', '-'));
        expect(lines.map((line) => ['traceparent' in line, line['msg']])).to.deep.equal([[false, 'request']]);
      });
    }
  });

  it('in JSON ends with a newline', async () => {
    const answers = [await session(), await placeCall(core.url, tenants.campaign.id, key), await placeCall(core.url, 'none', key)];
    answers.push(await ask('GET', `${core.url}/nothing`), await ask('GET', `${core.managementUrl}/healthz`));
    expect(answers.map(({ status, text }) => [status, text.endsWith('}\n')])).to.deep.equal(
      [200, 202, 403, 401, 200].map((status) => [status, true]),
    );
  });

  it('to a failure of the core names the log entry as its instance', async () => {
    await direct.storage.database.write.schema.renameTable('sessions', 'sessions_away');
    const [own, made] = [await session({ 'X-Request-Id': 'mine' }), await session()];
    await direct.storage.database.write.schema.renameTable('sessions_away', 'sessions');
    expect([own.status, own.json['instance'], own.json['requestId']]).to.deep.equal([500, 'mine', undefined]);
    expect(made.json['instance']).to.equal(`urn:uuid:${getId(made)}`);
  });

  describe('to a call placed with an Idempotency-Key header', () => {
    const place = (idempotencyKey: string, body: object = {}) =>
      ask('POST', calls(), { key, headers: { 'Idempotency-Key': idempotencyKey }, body: { contact: { phone: '+493012345678' }, ...body } });

    it('has its value as the requestId, bare or quoted', async () => {
      const bare = await place('order-1');
      const quoted = await place('"order-1"');
      expect([bare.status, bare.json['requestId']]).to.deep.equal([202, 'order-1']);
      expect([quoted.status, quoted.headers['idempotent-replayed'], quoted.text]).to.deep.equal([202, 'true', bare.text]);
    });

    it('is a 202 if the body has the same value', async () => {
      expect((await place('order-2', { requestId: 'order-2' })).status).to.equal(202);
    });

    for (const [what, header, body] of [
      ['differs from the body', 'order-3', { requestId: 'order-4' }],
      ['has invalid characters', 'order 3', {}],
      ['is empty', '', {}],
      ['is only half quoted', '"order-3', {}],
    ] as const) {
      it(`is a 422 if it ${what}`, async () => {
        const { status, json } = await place(header, body);
        expect(status).to.equal(422);
        expect(JSON.stringify(json['errors'])).to.include('"path":"Idempotency-Key"');
      });
    }
  });
});
