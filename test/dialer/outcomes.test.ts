import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { callsSchema } from '#contract/console/calls.ts';
import { instant } from '../../core/domain/instant.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { dialerOnce, olderSecret, signingSecret } from '../support/provider.ts';
import { signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('the dialer', () => {
  onEachDatabase((kind) => {
    const dialer = dialerOnce(kind, { environment: { DIALER_DEDUPLICATES: 'true' } });
    const { place, call, cancel, outcome } = dialer;

    it('hands off a placed call immediately, with all fields of the request, the settings of its campaign, and signed with the newest secret', async () => {
      const { campaign } = dialer.tenants;
      const cookie = await signIn(dialer.core.url, 'pat@example.com');
      for (const body of [{ settings: { agent: 'nora' } }, { name: 'Recall' }])
        await ask('PATCH', `${dialer.core.url}/console/directory/campaigns/${campaign.id}`, { cookie, body });
      const contact = { phone: '+493012345678', name: 'Ada Lovelace', timeZone: 'Europe/Berlin' };
      const placed = await place({ requestId: 'order-1', contact, variables: { b: '2', a: '1' } });
      await dialer.receiver.until(1);
      const [one] = dialer.receiver.received;
      expect(one?.handoff).to.deep.equal({
        handoffId: one?.handoff.handoffId,
        requestId: 'order-1',
        contactId: textAt(placed, 'contactId'),
        campaignId: campaign.id,
        contact,
        variables: { a: '1', b: '2' },
        placedAt: textAt(placed, 'placedAt'),
        campaign: { id: campaign.id, name: 'Recall', settings: { agent: 'nora' } },
        account: { id: dialer.tenants.account.id, name: dialer.tenants.account.name },
        partner: { id: dialer.tenants.partner.id, name: dialer.tenants.partner.name },
      });
      expect(one?.headers).to.include({ 'content-type': 'application/json', 'webhook-id': one?.handoff.handoffId });
      const headers = Object.fromEntries(Object.entries(one?.headers ?? {}).map(([name, value]) => [name, String(value)]));
      const payload = one?.body.toString() ?? '';
      expect(new Webhook(signingSecret).verify(payload, headers)).to.deep.equal(one?.handoff);
      expect(() => new Webhook(olderSecret).verify(payload, headers)).to.throw('No matching signature');
    });

    it('stores only the first outcome of a call, signed with any of the secrets, and shows it only in the console', async () => {
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
      expect((await outcome({ handoffId, state: 'busy' }, olderSecret)).status).to.equal(204);
      expect(await call(contactId)).to.include({ state: 'completed', detail: 'Talked.', duration_seconds: 42, answered_by: 'machine' });
      const { calls } = callsSchema.parse(
        (await ask('GET', `${dialer.core.url}/console/campaigns/${dialer.tenants.campaign.id}/calls`, { cookie: dialer.cookie })).json,
      );
      expect(calls[0]).to.include({ state: 'completed', detail: 'Talked.', endedAt: '2026-11-21T10:00:00.000Z', simulated: false });
      const late = await cancel(contactId);
      expect(late.status).to.equal(409);
      expect(late.text).not.to.include('completed');
    });

    // What the dialer asks its store doesn't depend on the database.
    if (kind === 'postgres') return;

    it('repeats a hand-off if the response is lost and the provider deduplicates', async () => {
      let tries = 0;
      dialer.answerWith((_, response) => {
        if (++tries === 1) response.destroy();
        else response.writeHead(202).end();
      });
      await place();
      await dialer.receiver.until(2);
      expect(new Set(dialer.receiver.received.map(({ handoff }) => handoff.handoffId)).size).to.equal(1);
    });
  });
});

describe('the simulated dialer', () => {
  const dialer = dialerOnce('sqlite', { environment: { DIALER: 'simulated' } });
  const { place, call, untilState } = dialer;

  it('simulates the same outcome for the same number, and marks it as simulated', async () => {
    // This call would end after 50 seconds.
    const contactId = textAt(await place({ contact: { phone: '+493023125300' } }), 'contactId');
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
