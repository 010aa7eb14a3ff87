import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { cancelledCallSchema, placedCallSchema } from '#contract/calls/calls.ts';
import { routes } from '#contract/routes.ts';
import { instant, plus } from '../../core/domain/instant.ts';
import { openCore, startCoreHere } from '../support/core.ts';
import { itOnPostgres, onEachDatabase } from '../support/databases.ts';
import { type Answer, ask, overSocket, readCode, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, databaseWithTenants, onDemand, openDirect, placeCall, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('the key-authenticated endpoints', () => {
  onEachDatabase((kind) => {
    const its = openOnce(() => openCore({ kind }));
    let key: string;

    before(async () => {
      key = (await createKey(its.core.url, await signIn(its.core.url, 'ada@example.com'))).keyValue;
    });

    const place = (body: object) => placeCall(its.core.url, its.tenants.campaign.id, key, body);
    const cancelUrl = (rest: string) => `${onDemand(its.core.url, its.tenants.campaign.id)}/${rest}`;

    it('placing a call returns 202 with the queued call', async () => {
      const answer = await place({
        requestId: 'order-4711',
        contact: { phone: '+493012345678', name: 'Ada Lovelace', timeZone: 'Europe/Berlin' },
        variables: { orderNumber: '4711' },
        notBefore: '2026-11-21T09:00:00.000Z',
        notAfter: '2099-11-21T18:00:00.000Z',
      });
      expect(answer.status).to.equal(202);
      expect(answer.json).to.deep.include({ requestId: 'order-4711', campaignId: its.tenants.campaign.id, state: 'queued' });
      expect(placedCallSchema.parse(answer.json)).to.deep.equal(answer.json);
      expect(answer.headers).to.include({ 'cache-control': 'no-store', 'content-type': 'application/json; charset=utf-8' });
      expect(answer.headers).not.to.have.property('idempotent-replayed');
    });

    describe('repeating a request ID', () => {
      it('returns the first response, marked as a replay, even if the body is written in another way', async () => {
        const body = { requestId: 'again', contact: { phone: somePhone(), name: 'Ada' }, notAfter: '2099-11-21T18:00:00Z' };
        const first = await place({ ...body, variables: {} });
        const second = await place({ ...body, notAfter: '2099-11-21T18:00:00.000+00:00' });
        expect([second.status, second.text]).to.deep.equal([202, first.text]);
        expect(second.headers).to.include({ 'idempotent-replayed': 'true' });
      });

      it('returns the first response even after notAfter, although a new request gets a 422', async () => {
        const body = { contact: { phone: somePhone() }, notAfter: new Date(Date.now() + 60_000).toISOString() };
        const first = await place({ requestId: 'in-time', ...body });
        const past = { not_after: instant(1) };
        await its.direct.storage.database.write('calls').where({ request_id: 'in-time' }).update(past);
        const late = { ...body, notAfter: new Date(1).toISOString() };
        const second = await place({ requestId: 'in-time', ...late });
        expect([second.status, second.text, second.headers['idempotent-replayed']]).to.deep.equal([202, first.text, 'true']);
        const other = await place({ requestId: 'in-time', ...late, contact: { phone: '+493012345679' } });
        expect([other.status, readCode(other)]).to.deep.equal([409, 'request-id-conflict']);
        for (const requestId of [undefined, 'too-late']) {
          const { status, json } = await place({ requestId, ...late });
          expect([status, json['errors']]).to.deep.equal([422, [{ path: 'notAfter', message: 'Must be in the future.' }]]);
        }
        const elsewhere = await placeCall(its.core.url, 'none', key, { requestId: 'too-late', ...late });
        expect([elsewhere.status, readCode(elsewhere)]).to.deep.equal([403, 'campaign-refused']);
      });

      it('returns the first response even after the call is cancelled, until its contact data is erased, and then says so', async () => {
        const body = { requestId: 'erased', contact: { phone: somePhone() } };
        const first = await place(body);
        expect((await ask('DELETE', cancelUrl(textAt(first, 'contactId')), { key })).status).to.equal(200);
        expect((await place(body)).text).to.equal(first.text);
        await its.direct.ports.stores.retention.erase(plus(its.direct.ports.clock.now(), 1));
        const again = await place(body);
        expect([again.status, readCode(again)]).to.deep.equal([409, 'request-id-conflict']);
        expect(again.json['detail']).to.include('contact data has been erased');
      });
    });

    describe('cancelling a call', () => {
      for (const by of ['contact ID', 'request ID'] as const) {
        const formatUrl = (call: Answer) =>
          cancelUrl(by === 'contact ID' ? textAt(call, 'contactId') : `by-request-id/${textAt(call, 'requestId')}`);

        it(`by ${by} returns 200, and the same response when repeated`, async () => {
          const call = await place({ contact: { phone: somePhone() } });
          const url = formatUrl(call);
          const first = await ask('DELETE', url, { key });
          expect(first.status).to.equal(200);
          expect(cancelledCallSchema.parse(first.json)).to.deep.equal(first.json);
          expect(first.json).to.deep.include({ contactId: call.json['contactId'], requestId: call.json['requestId'], state: 'cancelled' });
          const second = await ask('DELETE', url, { key });
          expect([second.status, second.text]).to.deep.equal([200, first.text]);
        });

        it(`by ${by} returns 409 without an outcome if the call has ended`, async () => {
          const call = await place({ contact: { phone: somePhone() } });
          const ended = its.direct.storage.database.write('calls').where({ contact_id: textAt(call, 'contactId') });
          await ended.update({ state: 'completed' });
          const answer = await ask('DELETE', formatUrl(call), { key });
          expect([answer.status, readCode(answer)]).to.deep.equal([409, 'already-dialed']);
          expect(answer.text).not.to.contain('completed');
        });
      }

      for (const rest of ['no-such-call', 'by-request-id/no-such-call', '%00', 'by-request-id/a%20b', 'x'.repeat(200)]) {
        it(`returns 404 for ${rest.slice(0, 30)}`, async () => {
          const answer = await ask('DELETE', cancelUrl(rest), { key });
          expect([answer.status, readCode(answer)]).to.deep.equal([404, 'call-not-found']);
        });
      }
    });

    describe("a campaign that the key doesn't have access to", () => {
      it('is refused with the same response as a missing campaign, byte for byte', async () => {
        const campaigns = [
          its.tenants.otherCampaign.id,
          its.tenants.siblingCampaign.id,
          'no-such-campaign',
          '%00',
          'a%2Fb',
          'x'.repeat(500),
        ];
        const answers = await Promise.all(campaigns.map((id) => placeCall(its.core.url, id, key)));
        expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
        expect([answers[0]?.status, answers[0] && readCode(answers[0])]).to.deep.equal([403, 'campaign-refused']);
      });

      it('is refused before the body is validated, and for cancelling as well', async () => {
        const url = onDemand(its.core.url, its.tenants.otherCampaign.id);
        expect(readCode(await ask('POST', url, { key, raw: 'not json' }))).to.equal('campaign-refused');
        expect(readCode(await ask('DELETE', `${url}/anything`, { key }))).to.equal('campaign-refused');
      });
    });

    // How input is read doesn't depend on the database.
    if (kind === 'postgres') return;

    it('a request without a body or with bad percent-encoding gets a 400', async () => {
      const url = onDemand(its.core.url, its.tenants.campaign.id);
      const head = `POST ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\n`;
      const answer = await overSocket(its.core.url, `${head}Connection: close\r\n\r\n`);
      expect(answer).to.match(/^HTTP\/1.1 400 /);
      expect(answer).to.contain((await ask('POST', url, { key, raw: '' })).text);
      const malformed = await ask('DELETE', cancelUrl('%zz'), { key });
      expect([malformed.status, readCode(malformed)]).to.deep.equal([400, 'malformed-request']);
    });
  });

  itOnPostgres('count a client that hangs up while its key is being looked up', async () => {
    const { database, tenants } = await databaseWithTenants('postgres');
    const core = await startCoreHere(database);
    const direct = await openDirect(database);
    const { keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com'));
    const { hostname, port } = new URL(core.url);
    await direct.storage.database.write.transaction(async (trx) => {
      await trx.raw('LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE');
      const client = connect(Number(port), hostname);
      client.write(`POST ${new URL(onDemand(core.url, tenants.campaign.id)).pathname} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${keyValue}\r\n`);
      client.write('Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{');
      // The server also has the databases of other test files.
      const mine = '(SELECT oid FROM pg_database WHERE datname = current_database())';
      const waiting = () => trx('pg_locks').whereRaw(`NOT granted AND database = ${mine}`);
      await until(async () => (await waiting()).length > 0);
      client.resetAndDestroy();
      await once(client, 'close');
    });
    const counted = () => core.log.find(({ msg, route }) => msg === 'request' && route === routes.placeCall.path);
    await until(() => counted() !== undefined);
    expect(counted()).to.include({ method: 'POST', status: 400 });
    await direct.close();
    await core.close();
  });
});
