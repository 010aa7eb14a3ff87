import { expect } from 'chai';
import { callsSchema } from '#contract/console/calls.ts';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { instant } from '../../core/domain/instant.ts';
import { onEachDatabase } from '../support/databases.ts';
import { dialerForEach } from '../support/dialer-harness.ts';
import { ask, textAt } from '../support/http.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('the dialer', () => {
  const dialer = dialerForEach('sqlite');
  const { start, place, call, untilState, startCore } = dialer;

  it('fails a call that the provider rejects, and keeps the reason', async () => {
    await start({}, (_, response) => void response.writeHead(422).end('no such line\n'));
    const ended = await untilState(textAt(await place(), 'contactId'), 'failed');
    expect(ended['detail']).to.equal('The provider returned 422: no such line');
    expect(dialer.receiver.received).to.have.length(1);
  });

  it("doesn't repeat a hand-off if the response is lost, and the call becomes unknown", async () => {
    await start({}, (_, response) => void response.destroy());
    const contactId = textAt(await place(), 'contactId');
    const ended = await untilState(contactId, 'unknown');
    expect(ended['detail']).to.contain('response was lost');
    expect(dialer.receiver.received).to.have.length(1);
  });

  it('repeats a hand-off if the response is lost and the provider deduplicates', async () => {
    let tries = 0;
    await start({ DIALER_DEDUPLICATES: 'true' }, (_, response) => {
      if (++tries === 1) response.destroy();
      else response.writeHead(202).end();
    });
    await place();
    await dialer.receiver.until(2);
    expect(new Set(dialer.receiver.received.map(({ handoff }) => handoff.handoffId)).size).to.equal(1);
  });

  it("doesn't hand off a call whose notAfter passed while it was waiting for a retry", async () => {
    await start({}, (_, response) => response.writeHead(503, { 'Retry-After': '3600' }).end());
    const contactId = textAt(await place({ notAfter: '2099-01-01T00:00:00.000Z' }), 'contactId');
    await until(async () => (await call(contactId))['handoff'] === 'retry');
    await dialer.direct.storage.database
      .write('calls')
      .where({ contact_id: contactId })
      .update({ not_after: instant(1), due_at: instant(1) });
    await untilState(contactId, 'lapsed');
    expect(dialer.receiver.received).to.have.length(1);
  });

  it('starts the retry window at the first attempt, however long the call waited before', async () => {
    let tries = 0;
    await start({ DIALER: 'off' }, (_, response) => response.writeHead(++tries < 2 ? 503 : 202).end());
    const contactId = textAt(await place(), 'contactId');
    // Longer than the retry window, but not long enough for the call to lapse.
    const longAgo = Date.now() - 2 * dialingLimits.window.toMillis();
    await dialer.direct.storage.database
      .write('calls')
      .where({ contact_id: contactId })
      .update({ placed_at: instant(longAgo), due_at: instant(longAgo) });
    await dialer.core.close();
    await startCore();
    await dialer.receiver.until(2);
    await untilState(contactId, 'dialing');
  });

  it('waits for notBefore', async () => {
    await start();
    const now = Date.now();
    const later = textAt(await place({ notBefore: new Date(now + 1_500).toISOString() }), 'contactId');
    const far = textAt(await place({ notBefore: '2099-01-01T00:00:00.000Z' }), 'contactId');
    await dialer.receiver.until(1);
    expect(Date.now()).to.be.at.least(now + 1_500);
    expect(dialer.receiver.received.map(({ handoff }) => handoff.contactId)).to.deep.equal([later]);
    expect(await call(far)).to.include({ state: 'queued' });
  });

  it("lets a call lapse if it hasn't been dialed by notAfter", async () => {
    await start({ DIALER: 'off' });
    const contactId = textAt(await place({ notAfter: '2099-01-01T00:00:00.000Z' }), 'contactId');
    await dialer.direct.storage.database
      .write('calls')
      .where({ contact_id: contactId })
      .update({ not_after: instant(1) });
    await dialer.core.close();
    await startCore();
    await untilState(contactId, 'lapsed');
    expect(dialer.receiver.received).to.deep.equal([]);
  });

  it('simulates the same outcome for the same number, and marks it as simulated', async () => {
    await start({ DIALER: 'simulated' });
    const contactId = textAt(await place(), 'contactId');
    const dialing = await untilState(contactId, 'dialing');
    expect(dialing['provider']).to.equal('simulated');
    const { calls } = callsSchema.parse(
      (await ask('GET', `${dialer.core.url}/console/campaigns/${dialer.tenants.campaign.id}/calls`, { cookie: dialer.cookie })).json,
    );
    expect(calls[0]).to.include({ state: 'dialing', simulated: true });
    expect(dialer.receiver.received).to.deep.equal([]);
    await until(async () => (await call(contactId))['handoff'] === 'taken');
    // Makes a minute pass without waiting.
    await dialer.direct.storage.database
      .write('calls')
      .where({ contact_id: contactId })
      .update({ due_at: instant(0) });
    const ended = await untilState(contactId, 'completed', 'no_answer', 'busy', 'failed');
    expect(String(ended['detail'])).to.match(/^Simulated: /);
  });
});

describe('the dialer', () => {
  onEachDatabase((kind) => {
    const dialer = dialerForEach(kind);
    const { start, place, call, untilState, cancel, startCore, startToKill } = dialer;

    it('never hands off a call whose cancellation returned 200', async () => {
      await start({ DIALER_CONCURRENCY: '20' });
      const cancelled = new Set<string>();
      const lost = new Set<string>();
      await Promise.all(
        Array.from({ length: 200 }, async () => {
          const contactId = textAt(await place(), 'contactId');
          const answer = await cancel(contactId);
          (answer.status === 200 ? cancelled : lost).add(contactId);
        }),
      );
      await dialer.receiver.until(lost.size);
      const called = dialer.receiver.received.map(({ handoff }) => handoff.contactId);
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
      await dialer.receiver.until(ids.length);
      isUp = true;
      // The cancellation competes with the dialer's claims for the next attempt.
      const cancelled = new Set<string>();
      for (const contactId of ids) {
        const { status } = await cancel(contactId);
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
      const otherKey = (await createKey(dialer.core.url, await signIn(dialer.core.url, 'oda@example.com'))).keyValue;
      await Promise.all(Array.from({ length: 400 }, () => place()));
      const single = textAt(await placeCall(dialer.core.url, dialer.tenants.otherCampaign.id, otherKey), 'contactId');
      await dialer.core.close();
      await startCore({ DIALER_CONCURRENCY: '4' });
      await dialer.receiver.until(100);
      const turn = dialer.receiver.received.findIndex(({ handoff }) => handoff.contactId === single);
      expect(turn).to.be.within(0, 8);
    });

    it('without deduplication, hands a call off once, and ends it as unknown if the core was killed during the hand-off', async () => {
      const { killed, placeThere } = await startToKill({}, () => undefined);
      const contactId = await placeThere();
      await dialer.receiver.until(1);
      await killed.stop('SIGKILL');
      await dialer.direct.storage.database
        .write('calls')
        .where({ contact_id: contactId })
        .update({ due_at: instant(1) });
      await startCore();
      await untilState(contactId, 'unknown');
      expect(dialer.receiver.received).to.have.length(1);
    });

    it('lets exactly one core take over each call of a killed core', async function () {
      this.timeout(60_000);
      const { killed, placeThere } = await startToKill({ DIALER_DEDUPLICATES: 'true' });
      const ids = await Promise.all(Array.from({ length: 60 }, placeThere));
      await killed.stop('SIGKILL');
      // The leases expire immediately, so that no one has to wait for them.
      await dialer.direct.storage.database
        .write('calls')
        .where({ state: 'dialing' })
        .whereNot({ handoff: 'taken' })
        .update({ due_at: instant(Date.now() - 1_000) });
      await startCore({ DIALER_DEDUPLICATES: 'true' });
      for (const id of ids) {
        await until(async () => (await call(id))['handoff'] === 'taken');
      }
      expect(new Set(dialer.receiver.received.map(({ handoff }) => handoff.contactId))).to.deep.equal(new Set(ids));
    });
  });
});
