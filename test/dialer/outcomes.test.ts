import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { sign } from '#contract/calls/signature.ts';
import { callsSchema } from '#contract/console/calls.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { dialerForEach, olderSecret, signingSecret } from '../support/provider.ts';
import { until } from '../support/until.ts';

describe('the dialer', () => {
  onEachDatabase((kind) => {
    const dialer = dialerForEach(kind);
    const { start, place, call, untilState, cancel, outcome } = dialer;

    describe('with a webhook', () => {
      it('hands off a placed call immediately, with all fields of the request and signed with the newest secret', async () => {
        await start();
        const contact = { phone: '+493012345678', name: 'Ada Lovelace', timeZone: 'Europe/Berlin' };
        const placed = await place({ requestId: 'order-1', contact, variables: { b: '2', a: '1' } });
        await dialer.receiver.until(1);
        const [one] = dialer.receiver.received;
        expect(one?.handoff).to.deep.equal({
          handoffId: one?.handoff.handoffId,
          requestId: 'order-1',
          contactId: textAt(placed, 'contactId'),
          campaignId: dialer.tenants.campaign.id,
          contact,
          variables: { a: '1', b: '2' },
          placedAt: textAt(placed, 'placedAt'),
          campaign: { id: dialer.tenants.campaign.id, name: dialer.tenants.campaign.name, settings: {} },
          account: { id: dialer.tenants.account.id, name: dialer.tenants.account.name },
          partner: { id: dialer.tenants.partner.id, name: dialer.tenants.partner.name },
        });
        expect(one?.headers).to.include({ 'content-type': 'application/json', 'webhook-id': one?.handoff.handoffId });
        const headers = Object.fromEntries(Object.entries(one?.headers ?? {}).map(([name, value]) => [name, String(value)]));
        const payload = one?.body.toString() ?? '';
        expect(new Webhook(signingSecret).verify(payload, headers)).to.deep.equal(one?.handoff);
        expect(() => new Webhook(olderSecret).verify(payload, headers)).to.throw('No matching signature');
      });

      it('stores only the first outcome of a call, and shows it only in the console', async () => {
        await start();
        const contactId = textAt(await place({ requestId: 'order-2' }), 'contactId');
        await dialer.receiver.until(1);
        const handoffId = dialer.receiver.received[0]?.handoff.handoffId;
        const first = {
          handoffId,
          state: 'completed',
          detail: 'Talked.',
          endedAt: '2026-11-21T10:00:00.000Z',
          durationSeconds: 42,
          answeredBy: 'machine',
        };
        expect((await outcome(first)).status).to.equal(204);
        expect((await outcome(first)).status).to.equal(204);
        expect((await outcome({ handoffId, state: 'busy' })).status).to.equal(204);
        expect(await call(contactId)).to.include({ state: 'completed', detail: 'Talked.', duration_seconds: 42, answered_by: 'machine' });
        const { calls } = callsSchema.parse(
          (await ask('GET', `${dialer.core.url}/console/campaigns/${dialer.tenants.campaign.id}/calls`, { cookie: dialer.cookie })).json,
        );
        expect(calls[0]).to.include({ state: 'completed', detail: 'Talked.', endedAt: '2026-11-21T10:00:00.000Z', simulated: false });
        const late = await cancel(contactId);
        expect(late.status).to.equal(409);
        expect(late.text).not.to.include('completed');
      });

      // The requests don't depend on the database.
      if (kind === 'sqlite') {
        it('refuses unsigned, stale, incorrectly signed and altered outcomes with the same response', async () => {
          await start();
          const { text: reference } = await ask('GET', `${dialer.core.url}/nowhere`);
          const contactId = textAt(await place({ notBefore: '2099-01-01T00:00:00Z' }), 'contactId');
          const now = Math.floor(Date.now() / 1_000);
          const body = { handoffId: contactId, state: 'completed' };
          const raw = JSON.stringify(body);
          const refused = [
            await ask('POST', `${dialer.core.url}/dialer/outcomes`, { body }),
            await outcome(body, { with: `whsec_${'else'.repeat(10)}` }),
            await outcome(body, { 'webhook-id': 'another' }),
            await outcome(body, { 'webhook-id': '' }),
            await outcome(body, { 'webhook-timestamp': String(now + 60) }),
            await outcome(body, { 'webhook-signature': 'v1,' }),
            await outcome(body, { 'webhook-signature': sign('any', raw, signingSecret, now)['webhook-signature'].replace('v1,', 'v2,') }),
            await outcome(body, { at: now - 301 }),
            await outcome(body, { at: now + 400 }),
            await ask('POST', `${dialer.core.url}/dialer/outcomes`, { raw: `${raw} `, headers: sign('any', raw, signingSecret, now) }),
            await ask('POST', `${dialer.core.url}/dialer/outcomes`, {
              raw: 'x'.repeat(70_000),
              headers: sign('any', raw, signingSecret, now),
            }),
          ];
          for (const answer of refused) expect([answer.status, answer.text]).to.deep.equal([401, reference]);
          // This outcome is for a call that was never handed off.
          expect((await outcome({ ...body, endedAt: '2026-11-21T10:00:00+00:00' })).status).to.equal(404);
          expect(await call(contactId)).to.include({ state: 'queued' });
        });

        it('accepts an outcome that the reference library signed, even if its header also has invalid signatures', async () => {
          await start();
          await place();
          await dialer.receiver.until(1);
          const raw = JSON.stringify({ handoffId: dialer.receiver.received[0]?.handoff.handoffId, state: 'busy' });
          const time = new Date();
          const signature = `v1a,of-another-kind v1,${'A'.repeat(43)}= ${new Webhook(signingSecret).sign('msg_1', time, raw)}`;
          const headers = {
            'webhook-id': 'msg_1',
            'webhook-timestamp': String(Math.floor(time.getTime() / 1_000)),
            'webhook-signature': signature,
          };
          expect((await ask('POST', `${dialer.core.url}/dialer/outcomes`, { raw, headers })).status).to.equal(204);
        });

        it('accepts outcomes signed with an older secret, and returns a 422 for an invalid outcome with a valid signature', async () => {
          await start();
          await place();
          await dialer.receiver.until(1);
          const handoffId = dialer.receiver.received[0]?.handoff.handoffId;
          expect((await outcome({ handoffId, state: 'ringing' })).status).to.equal(422);
          expect((await outcome({ handoffId, state: 'no_answer' }, { with: olderSecret })).status).to.equal(204);
        });

        it("doesn't follow a redirect", async () => {
          await start({}, (_, response) => void response.writeHead(307, { Location: '/elsewhere' }).end());
          await untilState(textAt(await place(), 'contactId'), 'failed');
          expect(dialer.receiver.received).to.have.length(1);
        });

        for (const status of [503, 401]) {
          it(`retries a hand-off with the same hand-off ID if the provider returns ${status}`, async () => {
            let tries = 0;
            await start({}, (_, response) => void response.writeHead(++tries < 3 ? status : 200).end());
            await place();
            await dialer.receiver.until(3);
            expect(new Set(dialer.receiver.received.map(({ handoff }) => handoff.handoffId)).size).to.equal(1);
          });
        }

        it("lets a call be cancelled while the provider refuses the core's signature or clock", async () => {
          await start({}, (_, response) => void response.writeHead(401, { 'Retry-After': '600' }).end('timestamp'));
          const contactId = textAt(await place(), 'contactId');
          await until(async () => (await call(contactId))['handoff'] === 'retry');
          expect(await call(contactId)).to.include({ state: 'dialing', detail: 'The provider returned 401: timestamp' });
          expect((await cancel(contactId)).status).to.equal(200);
        });
      }
    });
  });
});
