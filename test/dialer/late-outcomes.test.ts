import { expect } from 'chai';
import { sign } from '#contract/calls/signature.ts';
import { callDetailsSchema, callsSchema, callsSummarySchema } from '#contract/console/calls.ts';
import { plus } from '../../core/domain/instant.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { signingSecret } from '../support/provider.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

describe('a late outcome of a call in the state unknown', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    const options = { clock, environment: { DIALER: 'off', DIALER_SECRETS: signingSecret } };
    const its = openOnce(() => openCore({ kind, ...options }));
    const second = openOnce(() => startCoreHere(its.database, options));

    it('replaces this state, even if the dialer is off and two outcomes are reported at the same time, and is shown everywhere', async () => {
      const { core, tenants } = its;
      const cookie = await signIn(core.url, 'ada@example.com');
      const { keyValue } = await createKey(core.url, cookie);
      const place = () => placeCall(core.url, tenants.campaign.id, keyValue, { contact: { phone: '+493012345678' } });
      const contactId = textAt(await place(), 'contactId');
      const { dialing } = its.direct.ports.stores;
      const [claimed = expect.fail()] = await dialing.claim(1, 'webhook', clock.now(), plus(clock.now(), 30_000));
      const unknown = { to: 'unknown', detail: 'The response was lost.', endedAt: clock.now(), durationSeconds: null } as const;
      expect(await dialing.settle(claimed, { event: 'must-not-repeat', ...unknown })).to.equal(true);
      const read = async (path: string) =>
        (await ask('GET', `${core.url}/console/campaigns/${tenants.campaign.id}/calls${path}`, { cookie })).json;
      const show = async () => callDetailsSchema.parse(await read(`/${contactId}`));

      clock.advance({ minutes: 3 });
      const report = async ({ url }: { url: string }, outcome: object) => {
        const raw = JSON.stringify({ handoffId: contactId, ...outcome });
        const headers = sign('any', raw, signingSecret, Math.floor(clock.now() / 1_000));
        return (await ask('POST', `${url}/dialer/outcomes`, { raw, headers })).status;
      };
      const told = { detail: 'Talked.', durationSeconds: 42, optOut: true };
      const statuses = await Promise.all([report(core, { ...told, state: 'completed' }), report(second, { ...told, state: 'busy' })]);
      expect(statuses).to.deep.equal([204, 204]);
      const now = new Date(clock.now()).toISOString();
      const details = await show();
      const { state, dialedAt, ...call } = details.call;
      expect(state).to.be.oneOf(['completed', 'busy']);
      expect(dialedAt).to.be.a('string');
      expect(call).to.deep.include({ detail: 'Talked.', endedAt: now });
      expect(details).to.deep.include({ durationSeconds: 42, toldLateAt: now });

      clock.advance({ minutes: 1 });
      expect(await report(core, { state: 'no_answer', detail: 'Another.' })).to.equal(204);
      expect(await show()).to.deep.equal(details);
      const listed = async (filter: string) => callsSchema.parse(await read(`?state=${filter}`)).calls.map((one) => one.contactId);
      expect([await listed('unknown'), await listed(state)]).to.deep.equal([[], [contactId]]);
      const { days } = callsSummarySchema.parse(await read('/summary?timeZone=UTC'));
      expect(days.flatMap(({ states }) => Object.entries(states))).to.deep.equal([[state, 1]]);
      const metrics = await Promise.all(
        [core, second].map(async ({ managementUrl }) => (await ask('GET', `${managementUrl}/metrics`)).text),
      );
      const counted = metrics.flatMap((text) => text.match(/^callkey_outcomes_total.* 1$/gm) ?? []);
      expect(counted).to.have.length(1);
      expect((await place()).status).to.equal(403);
    });
  });
});
