import { expect } from 'chai';
import { sign } from '#contract/calls/signature.ts';
import { callDetailsSchema, callsSchema, callsSummarySchema } from '#contract/console/calls.ts';
import { fakeClock } from '../support/clock.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/provider.ts';
import { createKey, databaseWithTenants, placeCall, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('a late outcome of a call in the state unknown', () => {
  onEachDatabase((kind) => {
    const cores: RunningCore[] = [];
    const stop = () => Promise.all(cores.splice(0).map((core) => core.close()));
    let receiver: Awaited<ReturnType<typeof startReceiver>>;
    before(async () => {
      receiver = await startReceiver((_, response) => response.destroy());
    });
    after(async () => {
      await stop();
      await receiver.close();
    });

    it('replaces this state, even if the dialer is off and two outcomes are reported at the same time, and is shown everywhere', async () => {
      const clock = fakeClock();
      const { database, tenants } = await databaseWithTenants(kind);
      const start = async (DIALER: 'webhook' | 'off') => {
        const environment = { DIALER, DIALER_URL: receiver.url, DIALER_SECRETS: signingSecret };
        const core = await startCoreHere(database, { clock, environment });
        cores.push(core);
        return core;
      };
      const webhook = await start('webhook');
      const { keyValue } = await createKey(webhook.url, await signIn(webhook.url, 'ada@example.com'));
      const place = ({ url }: RunningCore) => placeCall(url, tenants.campaign.id, keyValue, { contact: { phone: '+493012345678' } });
      const contactId = textAt(await place(webhook), 'contactId');
      const read = async ({ url }: RunningCore, path: string) =>
        (await ask('GET', `${url}/console/campaigns/${tenants.campaign.id}/calls${path}`, { cookie: await signIn(url, 'ada@example.com') }))
          .json;
      const show = async (core: RunningCore) => callDetailsSchema.parse(await read(core, `/${contactId}`));
      await until(async () => (await show(webhook)).call.state === 'unknown');
      await stop();

      const [core, other] = [await start('off'), await start('off')];
      clock.advance({ minutes: 3 });
      const report = async ({ url }: RunningCore, outcome: object) => {
        const raw = JSON.stringify({ handoffId: contactId, ...outcome });
        const headers = sign('any', raw, signingSecret, Math.floor(clock.now() / 1_000));
        return (await ask('POST', `${url}/dialer/outcomes`, { raw, headers })).status;
      };
      const told = { detail: 'Talked.', durationSeconds: 42, optOut: true };
      const statuses = await Promise.all([report(core, { ...told, state: 'completed' }), report(other, { ...told, state: 'busy' })]);
      expect(statuses).to.deep.equal([204, 204]);
      const now = new Date(clock.now()).toISOString();
      const details = await show(core);
      const { state, dialedAt, ...call } = details.call;
      expect(state).to.be.oneOf(['completed', 'busy']);
      expect(dialedAt).to.be.a('string');
      expect(call).to.deep.include({ detail: 'Talked.', endedAt: now });
      expect(details).to.deep.include({ durationSeconds: 42, toldLateAt: now });

      clock.advance({ minutes: 1 });
      expect(await report(core, { state: 'no_answer', detail: 'Another.' })).to.equal(204);
      expect(await show(core)).to.deep.equal(details);
      const listed = async (filter: string) => callsSchema.parse(await read(core, `?state=${filter}`)).calls.map((one) => one.contactId);
      expect([await listed('unknown'), await listed(state)]).to.deep.equal([[], [contactId]]);
      const { days } = callsSummarySchema.parse(await read(core, '/summary?timeZone=UTC'));
      expect(days.flatMap(({ states }) => Object.entries(states))).to.deep.equal([[state, 1]]);
      const metrics = await Promise.all(cores.map(async ({ managementUrl }) => (await ask('GET', `${managementUrl}/metrics`)).text));
      const counted = metrics.flatMap((text) => text.match(/^callkey_outcomes_total.* 1$/gm) ?? []);
      expect(counted).to.have.length(1);
      expect((await place(core)).status).to.equal(403);
    });
  });
});
