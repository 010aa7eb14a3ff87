import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { sign } from '#contract/calls/signature.ts';
import { callsSchema } from '#contract/console/calls.ts';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { instant } from '../../core/domain/instant.ts';
import { testRandomness } from '../support/clock.ts';
import { type RunningCore, spawnCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask, textAt } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/receiver.ts';
import {
  createKey,
  type DirectAccess,
  databaseWithTenants,
  onDemand,
  openDirect,
  placeCall,
  signIn,
  somePhone,
  type Tenants,
} from '../support/tenants.ts';
import { until } from '../support/until.ts';

const secret = signingSecret;
const olderSecret = `whsec_${'old1'.repeat(10)}`;
type Receiver = Awaited<ReturnType<typeof startReceiver>>;
type Signed = { with?: string; at?: number; [header: `webhook-${string}`]: string };

describe('the dialer', () => {
  onEachDatabase((kind) => {
    let database: string;
    let core: RunningCore;
    let direct: DirectAccess;
    let tenants: Tenants;
    let key: string;
    let cookie: string;
    let receiver: Receiver;

    const webhook = () => ({ DIALER: 'webhook', DIALER_URL: receiver.url, DIALER_SECRETS: secret });
    const start = async (environment: Record<string, string>, answer?: Parameters<typeof startReceiver>[0]) => {
      receiver = await startReceiver(answer);
      const secrets = { DIALER_SECRETS: `${secret},${olderSecret}` };
      core = await startCoreHere(database, { environment: { ...webhook(), ...secrets, ...environment } });
      cookie = await signIn(core.url, 'ada@example.com');
      key = (await createKey(core.url, cookie)).keyValue;
    };
    beforeEach(async () => {
      ({ database, tenants } = await databaseWithTenants(kind));
      direct = await openDirect(database);
    });
    afterEach(async () => {
      await core.close();
      await receiver.close();
      await direct.close();
    });

    const place = (body: object = {}): Promise<Answer> =>
      placeCall(core.url, tenants.campaign.id, key, { contact: { phone: somePhone() }, ...body });
    const call = async (contactId: string): Promise<Record<string, unknown>> =>
      (await direct.storage.database.read('calls').where({ contact_id: contactId }).first()) ?? {};
    /** Waits until the call is in one of these states. */
    const untilState = async (contactId: string, ...states: string[]) => {
      await until(async () => states.includes(String((await call(contactId))['state'])));
      return call(contactId);
    };
    const outcome = (body: object, { with: by = secret, at = Math.floor(Date.now() / 1_000), ...headers }: Signed = {}) => {
      const raw = JSON.stringify(body);
      return ask('POST', `${core.url}/dialer/outcomes`, { raw, headers: { ...sign('any', raw, by, at), ...headers } });
    };

    describe('with a webhook', () => {
      it('hands off a placed call immediately with everything that was sent, signed with the newest secret', async () => {
        await start({});
        const contact = { phone: '+493012345678', name: 'Ada Lovelace', timeZone: 'Europe/Berlin' };
        const placed = await place({ requestId: 'order-1', contact, variables: { b: '2', a: '1' } });
        await receiver.until(1);
        const [one] = receiver.received;
        expect(one?.handoff).to.deep.equal({
          handoffId: one?.handoff.handoffId,
          requestId: 'order-1',
          contactId: textAt(placed, 'contactId'),
          campaignId: tenants.campaign.id,
          contact,
          variables: { a: '1', b: '2' },
          placedAt: textAt(placed, 'placedAt'),
        });
        expect(one?.headers).to.include({ 'content-type': 'application/json', 'webhook-id': one?.handoff.handoffId });
        const headers = Object.fromEntries(Object.entries(one?.headers ?? {}).map(([name, value]) => [name, String(value)]));
        const payload = one?.body.toString() ?? '';
        expect(new Webhook(secret).verify(payload, headers)).to.deep.equal(one?.handoff);
        expect(() => new Webhook(olderSecret).verify(payload, headers)).to.throw('No matching signature');
      });

      it('stores the first outcome of a call for good, and shows it only in the console', async () => {
        await start({});
        const contactId = textAt(await place({ requestId: 'order-2' }), 'contactId');
        await receiver.until(1);
        const handoffId = receiver.received[0]?.handoff.handoffId;
        const first = { handoffId, state: 'completed', detail: 'Talked.', endedAt: '2026-11-21T10:00:00.000Z', durationSeconds: 42 };
        expect((await outcome(first)).status).to.equal(204);
        expect((await outcome(first)).status).to.equal(204);
        expect((await outcome({ handoffId, state: 'busy' })).status).to.equal(204);
        expect(await call(contactId)).to.include({ state: 'completed', detail: 'Talked.', duration_seconds: 42 });
        const { calls } = callsSchema.parse(
          (await ask('GET', `${core.url}/console/campaigns/${tenants.campaign.id}/calls`, { cookie })).json,
        );
        expect(calls[0]).to.include({ state: 'completed', detail: 'Talked.', endedAt: '2026-11-21T10:00:00.000Z', simulated: false });
        const cancel = await ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/${contactId}`, { key });
        expect(cancel.status).to.equal(409);
        expect(cancel.text).not.to.include('completed');
      });

      it('fails a call that the provider rejects, and keeps the reason', async () => {
        await start({}, (_, response) => void response.writeHead(422).end('no such line\n'));
        const ended = await untilState(textAt(await place(), 'contactId'), 'failed');
        expect(ended['detail']).to.equal('The provider returned 422: no such line');
        expect(receiver.received).to.have.length(1);
      });

      it("doesn't repeat a hand-off if the response is lost, and the call becomes unknown", async () => {
        await start({}, (_, response) => void response.destroy());
        const contactId = textAt(await place(), 'contactId');
        const ended = await untilState(contactId, 'unknown');
        expect(ended['detail']).to.contain('response was lost');
        expect(receiver.received).to.have.length(1);
      });

      it('repeats a hand-off if the response is lost and the provider de-duplicates', async () => {
        let tries = 0;
        await start({ DIALER_DEDUPLICATES: 'true' }, (_, response) => {
          if (++tries === 1) response.destroy();
          else response.writeHead(202).end();
        });
        await place();
        await receiver.until(2);
        expect(new Set(receiver.received.map(({ handoff }) => handoff.handoffId)).size).to.equal(1);
      });

      it("doesn't hand off a call whose notAfter passed while it was waiting for a retry", async () => {
        let status = 503;
        await start({}, (_, response) => response.writeHead(status).end());
        const contactId = textAt(await place({ notAfter: '2099-01-01T00:00:00.000Z' }), 'contactId');
        await until(async () => (await call(contactId))['handoff'] === 'retry');
        status = 202;
        const { length } = receiver.received;
        await direct.storage.database
          .write('calls')
          .where({ contact_id: contactId })
          .update({ not_after: instant(1) });
        await untilState(contactId, 'lapsed');
        expect(receiver.received).to.have.length(length);
      });

      it('starts the retry window at the first attempt, however long the call waited before', async () => {
        let tries = 0;
        await start({ DIALER: 'off' }, (_, response) => response.writeHead(++tries < 2 ? 503 : 202).end());
        const contactId = textAt(await place(), 'contactId');
        // Longer than the retry window, but not long enough for the call to lapse.
        const longAgo = Date.now() - 2 * dialingLimits.window.toMillis();
        await direct.storage.database
          .write('calls')
          .where({ contact_id: contactId })
          .update({ placed_at: instant(longAgo), due_at: instant(longAgo) });
        await core.close();
        core = await startCoreHere(database, { environment: webhook() });
        await receiver.until(2);
        await untilState(contactId, 'dialing');
      });

      it("doesn't make up an outcome for a call at another provider", async () => {
        await start({});
        const contactId = textAt(await place(), 'contactId');
        await until(async () => (await call(contactId))['handoff'] === 'taken');
        await core.close();
        await direct.storage.database
          .write('calls')
          .where({ contact_id: contactId })
          .update({ due_at: instant(1) });
        core = await startCoreHere(database, { environment: { DIALER: 'simulated' } });
        expect(await untilState(contactId, 'unknown', 'completed', 'no_answer', 'busy', 'failed')).to.include({
          state: 'unknown',
          provider: 'webhook',
        });
      });

      describe('that reports an opt-out', () => {
        const entries = (phone: string) => direct.storage.database.read('do_not_call').where({ phone });
        const optOut = (handoffId: string | undefined, more: object = {}) =>
          outcome({ handoffId, state: 'completed', optOut: true, ...more });
        /** Places a call, and waits until the provider has it. */
        const dialed = async (phone: string) => {
          const contactId = textAt(await place({ contact: { phone } }), 'contactId');
          await until(async () => (await call(contactId))['handoff'] === 'taken');
          return contactId;
        };

        it("puts the number on the account's list with the outcome, and stops the other calls queued for it", async () => {
          await start({});
          const phone = somePhone();
          const first = await dialed(phone);
          const later = { contact: { phone }, notBefore: '2099-01-01T00:00:00.000Z' };
          const queued = [await place(later), await place(later), await place(later)].map((placed) => textAt(placed, 'contactId'));
          const other = textAt(await place({ ...later, contact: { phone: somePhone() } }), 'contactId');
          expect((await optOut(first, { detail: 'Never again.' })).status).to.equal(204);
          for (const contactId of queued) await untilState(contactId, 'blocked');
          expect([(await call(first))['state'], (await call(other))['state']]).to.deep.equal(['completed', 'queued']);
          expect((await place({ contact: { phone } })).status).to.equal(403);
          const [entry] = await entries(phone);
          expect(entry).to.include({
            account_id: tenants.account.id,
            contact_id: first,
            source: 'outcome',
            reason: 'asked',
            ends_at: null,
          });
          const events = await direct.storage.database.read('audit_events').where({ action: 'do-not-call.added' });
          expect(events.map(({ actor_name, account_id }) => [actor_name, account_id])).to.deep.equal([
            ['The provider', tenants.account.id],
          ]);
        });

        it("puts the number on the partner's list if the account is set so, and stops calls of its other accounts", async () => {
          await start({});
          await direct.ports.stores.protection.setOptOutScope(tenants.account.id, 'partner', {
            ...{ id: testRandomness.id(), at: direct.ports.clock.now(), actor: null, action: 'account.changed', address: 'local' },
            ...{ subject: { kind: 'account', id: tenants.account.id, name: 'Blue Clinic' }, owningScope: null },
          });
          const phone = somePhone();
          const first = await dialed(phone);
          const elsewhere = { account_id: tenants.siblingAccount.id, campaign_id: tenants.siblingCampaign.id };
          const queued = textAt(await place({ contact: { phone }, notBefore: '2099-01-01T00:00:00.000Z' }), 'contactId');
          await direct.storage.database.write('calls').where({ contact_id: queued }).update(elsewhere);
          expect((await optOut(first)).status).to.equal(204);
          await untilState(queued, 'blocked');
          const [entry] = await entries(phone);
          expect(entry).to.include({ scope_id: tenants.partner.id, account_id: null, contact_id: first });
        });

        it('keeps one entry if it is reported twice, or only after the outcome', async () => {
          await start({});
          const phone = somePhone();
          const handoffId = await dialed(phone);
          expect((await outcome({ handoffId, state: 'busy' })).status).to.equal(204);
          expect((await optOut(handoffId)).status).to.equal(204);
          expect((await optOut(handoffId)).status).to.equal(204);
          expect(await entries(phone)).to.have.length(1);
          expect((await call(handoffId))['state']).to.equal('busy');
        });

        it('lists nothing for an unknown hand-off, a wrong signature, or a number that was erased', async () => {
          await start({});
          const handoffId = await dialed(somePhone());
          expect((await optOut('unknown')).status).to.equal(404);
          const forged = await outcome({ handoffId, state: 'completed', optOut: true }, { with: `whsec_${'else'.repeat(10)}` });
          expect(forged.status).to.equal(401);
          expect((await call(handoffId))['state']).to.equal('dialing');
          await direct.storage.database.write('calls').where({ contact_id: handoffId }).update({ phone: null });
          const erased = await optOut(handoffId);
          expect([erased.status, erased.text]).to.deep.include(404);
          expect(await direct.storage.database.read('do_not_call')).to.deep.equal([]);
        });

        it('stores both or neither if the core fails between the outcome and the entry', async () => {
          await start({});
          const handoffId = await dialed(somePhone());
          await direct.storage.database.write.schema.renameTable('do_not_call', 'do_not_call_away');
          expect((await optOut(handoffId)).status).to.equal(500);
          expect((await call(handoffId))['state']).to.equal('dialing');
          await direct.storage.database.write.schema.renameTable('do_not_call_away', 'do_not_call');
          expect((await optOut(handoffId)).status).to.equal(204);
          expect((await call(handoffId))['state']).to.equal('completed');
          expect(await direct.storage.database.read('do_not_call')).to.have.length(1);
        });
      });

      it("doesn't let a provider decide when contact data is erased", async () => {
        await start({});
        const contactId = textAt(await place(), 'contactId');
        await receiver.until(1);
        await outcome({ handoffId: contactId, state: 'completed', endedAt: '9999-12-31T00:00:00.000Z' });
        expect(Number((await call(contactId))['ended_at'])).to.be.at.most(Date.now());
      });

      it('waits for notBefore', async () => {
        await start({});
        const now = Date.now();
        const later = textAt(await place({ notBefore: new Date(now + 1_500).toISOString() }), 'contactId');
        const far = textAt(await place({ notBefore: '2099-01-01T00:00:00.000Z' }), 'contactId');
        await receiver.until(1);
        expect(Date.now()).to.be.at.least(now + 1_500);
        expect(receiver.received.map(({ handoff }) => handoff.contactId)).to.deep.equal([later]);
        expect(await call(far)).to.include({ state: 'queued' });
      });

      it("lets a call lapse if it hasn't been dialed by notAfter", async () => {
        await start({ DIALER: 'off' });
        const contactId = textAt(await place({ notAfter: '2099-01-01T00:00:00.000Z' }), 'contactId');
        await direct.storage.database
          .write('calls')
          .where({ contact_id: contactId })
          .update({ not_after: instant(1) });
        await core.close();
        core = await startCoreHere(database, { environment: webhook() });
        await untilState(contactId, 'lapsed');
        expect(receiver.received).to.deep.equal([]);
      });

      it('never hands off a call whose cancellation returned 200', async () => {
        await start({ DIALER_CONCURRENCY: '20' });
        const cancelled = new Set<string>();
        const lost = new Set<string>();
        await Promise.all(
          Array.from({ length: 200 }, async () => {
            const contactId = textAt(await place(), 'contactId');
            const answer = await ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/${contactId}`, { key });
            (answer.status === 200 ? cancelled : lost).add(contactId);
          }),
        );
        await receiver.until(lost.size);
        const called = receiver.received.map(({ handoff }) => handoff.contactId);
        expect(called.filter((id) => cancelled.has(id))).to.deep.equal([]);
        expect(new Set(called)).to.deep.equal(lost);
        expect(called).to.have.length(lost.size);
      });

      it('never repeats the hand-off of a call that was cancelled before its retry', async () => {
        let isUp = false;
        const taken: string[] = [];
        await start({ DIALER_CONCURRENCY: '20' }, ({ handoff }, response) => {
          if (isUp) taken.push(handoff.handoffId);
          response.writeHead(isUp ? 202 : 503).end();
        });
        const ids = await Promise.all(Array.from({ length: 100 }, async () => textAt(await place(), 'contactId')));
        await receiver.until(ids.length);
        isUp = true;
        // The cancellation competes with the dialer's claims for the next try.
        const cancelled = new Set<string>();
        for (const contactId of ids) {
          const { status } = await ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/${contactId}`, { key });
          expect(status).to.be.oneOf([200, 409]);
          if (status === 200) cancelled.add(contactId);
        }
        await until(async () => taken.length >= ids.length - cancelled.size);
        expect(cancelled.size).to.be.greaterThan(0);
        expect([...new Set(taken)].toSorted()).to.deep.equal(ids.filter((id) => !cancelled.has(id)).toSorted());
        expect(taken).to.have.length(ids.length - cancelled.size);
      });

      it("doesn't let one account's flood delay another account", async () => {
        await start({ DIALER: 'off' });
        const otherKey = (await createKey(core.url, await signIn(core.url, 'oda@example.com'))).keyValue;
        await Promise.all(Array.from({ length: 400 }, () => place()));
        const single = textAt(await placeCall(core.url, tenants.otherCampaign.id, otherKey), 'contactId');
        await core.close();
        core = await startCoreHere(database, { environment: { ...webhook(), DIALER_CONCURRENCY: '4' } });
        await receiver.until(100);
        const turn = receiver.received.findIndex(({ handoff }) => handoff.contactId === single);
        expect(turn).to.be.within(0, 8);
      });

      // The requests don't depend on the database.
      if (kind === 'sqlite') {
        it('refuses unsigned, stale, incorrectly signed and altered outcomes with the same response', async () => {
          await start({});
          const { text: reference } = await ask('GET', `${core.url}/nowhere`);
          const contactId = textAt(await place({ notBefore: '2099-01-01T00:00:00Z' }), 'contactId');
          const now = Math.floor(Date.now() / 1_000);
          const body = { handoffId: contactId, state: 'completed' };
          const raw = JSON.stringify(body);
          const refused = [
            await ask('POST', `${core.url}/dialer/outcomes`, { body }),
            await outcome(body, { with: `whsec_${'else'.repeat(10)}` }),
            await outcome(body, { 'webhook-id': 'another' }),
            await outcome(body, { 'webhook-id': '' }),
            await outcome(body, { 'webhook-timestamp': String(now + 60) }),
            await outcome(body, { 'webhook-signature': 'v1,' }),
            await outcome(body, { 'webhook-signature': sign('any', raw, secret, now)['webhook-signature'].replace('v1,', 'v2,') }),
            await outcome(body, { at: now - 301 }),
            await outcome(body, { at: now + 400 }),
            await ask('POST', `${core.url}/dialer/outcomes`, { raw: `${raw} `, headers: sign('any', raw, secret, now) }),
            await ask('POST', `${core.url}/dialer/outcomes`, {
              raw: 'x'.repeat(70_000),
              headers: sign('any', raw, secret, now),
            }),
          ];
          for (const answer of refused) expect([answer.status, answer.text]).to.deep.equal([401, reference]);
          // This outcome is for a call that was never handed off.
          expect((await outcome({ ...body, endedAt: '2026-11-21T10:00:00+00:00' })).status).to.equal(404);
          expect(await call(contactId)).to.include({ state: 'queued' });
        });

        it('accepts outcomes signed by the reference library, among other signatures', async () => {
          await start({});
          await place();
          await receiver.until(1);
          const raw = JSON.stringify({ handoffId: receiver.received[0]?.handoff.handoffId, state: 'busy' });
          const time = new Date();
          const signature = `v1a,of-another-kind v1,${'A'.repeat(43)}= ${new Webhook(secret).sign('msg_1', time, raw)}`;
          const headers = {
            'webhook-id': 'msg_1',
            'webhook-timestamp': String(Math.floor(time.getTime() / 1_000)),
            'webhook-signature': signature,
          };
          expect((await ask('POST', `${core.url}/dialer/outcomes`, { raw, headers })).status).to.equal(204);
        });

        it('accepts outcomes signed with an older secret, and explains what is wrong with an invalid signed outcome', async () => {
          await start({});
          await place();
          await receiver.until(1);
          const handoffId = receiver.received[0]?.handoff.handoffId;
          expect((await outcome({ handoffId, state: 'ringing' })).status).to.equal(422);
          expect((await outcome({ handoffId, state: 'no_answer' }, { with: olderSecret })).status).to.equal(204);
        });

        it("doesn't follow a redirect", async () => {
          await start({}, (_, response) => void response.writeHead(307, { Location: '/elsewhere' }).end());
          await untilState(textAt(await place(), 'contactId'), 'failed');
          expect(receiver.received).to.have.length(1);
        });

        for (const status of [500, 503, 429]) {
          it(`retries after ${status} with the same hand-off ID`, async () => {
            let tries = 0;
            await start({}, (_, response) => void response.writeHead(++tries < 3 ? status : 200).end());
            await place();
            await receiver.until(3);
            expect(new Set(receiver.received.map(({ handoff }) => handoff.handoffId)).size).to.equal(1);
          });
        }

        it('retries if the connection fails before anything is sent, including during the TLS handshake', async () => {
          const hanging: Server = createServer((socket) => socket.once('data', () => socket.destroy())).listen(0, '127.0.0.1');
          await once(hanging, 'listening');
          const address = hanging.address();
          await start({ DIALER_URL: `https://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/` });
          const contactId = textAt(await place(), 'contactId');
          await until(async () => (await call(contactId))['handoff'] === 'retry');
          hanging.close();
          expect(await call(contactId)).to.include({ state: 'dialing' });
        });
      }
    });

    it('simulates the same outcome for the same number, and marks it as simulated', async () => {
      await start({ DIALER: 'simulated' });
      const contactId = textAt(await place(), 'contactId');
      const dialing = await untilState(contactId, 'dialing');
      expect(dialing['provider']).to.equal('simulated');
      const { calls } = callsSchema.parse(
        (await ask('GET', `${core.url}/console/campaigns/${tenants.campaign.id}/calls`, { cookie })).json,
      );
      expect(calls[0]).to.include({ state: 'dialing', simulated: true });
      expect(receiver.received).to.deep.equal([]);
      await until(async () => (await call(contactId))['handoff'] === 'taken');
      // Moves the clock to a minute from now, instead of waiting.
      await direct.storage.database
        .write('calls')
        .where({ contact_id: contactId })
        .update({ due_at: instant(0) });
      const ended = await untilState(contactId, 'completed', 'no_answer', 'busy', 'failed');
      expect(String(ended['detail'])).to.match(/^Simulated: /);
    });

    /** A core in a separate process, which the test kills. */
    const startToKill = async (environment: Record<string, string>, answer?: Parameters<typeof startReceiver>[0]) => {
      receiver = await startReceiver(answer);
      const killed = await spawnCore(database, { ...webhook(), ...environment });
      const { keyValue } = await createKey(killed.url, await signIn(killed.url, 'ada@example.com'));
      return { killed, placeThere: async () => textAt(await placeCall(killed.url, tenants.campaign.id, keyValue), 'contactId') };
    };

    it('hands a call off once and ends it as unknown if the core was killed while the provider had it, without de-duplication', async () => {
      const { killed, placeThere } = await startToKill({}, () => undefined);
      const contactId = await placeThere();
      await receiver.until(1);
      await killed.stop('SIGKILL');
      await direct.storage.database
        .write('calls')
        .where({ contact_id: contactId })
        .update({ due_at: instant(1) });
      core = await startCoreHere(database, { environment: webhook() });
      await untilState(contactId, 'unknown');
      expect(receiver.received).to.have.length(1);
    });

    it('lets exactly one core take over each call of a killed core', async function () {
      this.timeout(60_000);
      const { killed, placeThere } = await startToKill({ DIALER_DEDUPLICATES: 'true' });
      const ids = await Promise.all(Array.from({ length: 60 }, placeThere));
      await killed.stop('SIGKILL');
      // The leases expire immediately, so that no one has to wait for them.
      await direct.storage.database
        .write('calls')
        .where({ state: 'dialing' })
        .whereNot({ handoff: 'taken' })
        .update({ due_at: instant(Date.now() - 1_000) });
      core = await startCoreHere(database, { environment: { ...webhook(), DIALER_DEDUPLICATES: 'true' } });
      for (const id of ids) {
        await until(async () => (await call(id))['handoff'] === 'taken');
      }
      expect(new Set(receiver.received.map(({ handoff }) => handoff.contactId))).to.deep.equal(new Set(ids));
    });
  });
});
