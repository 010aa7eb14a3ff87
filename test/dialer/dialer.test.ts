import { expect } from 'chai';
import { callsSchema } from '#contract/console/calls.ts';
import { instant } from '../../core/domain/instant.ts';
import { ask, textAt } from '../support/http.ts';
import { dialerForEach } from '../support/provider.ts';
import { until } from '../support/until.ts';

describe('the dialer', () => {
  const dialer = dialerForEach('sqlite');
  const { start, place, call, untilState } = dialer;

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
