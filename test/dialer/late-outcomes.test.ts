import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { sign } from '#contract/calls/signature.ts';
import { callDetailsSchema, callsSchema, callsSummarySchema } from '#contract/console/calls.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { acceptClock } from '../../core/domain/clock.ts';
import { fakeClock } from '../support/clock.ts';
import { type RunningCore, spawnCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/provider.ts';
import { createKey, type DirectAccess, databaseWithTenants, openDirect, placeCall, signIn, type Tenants } from '../support/tenants.ts';
import { eventually, until } from '../support/until.ts';

const phone = '+493012345678';

describe('a late outcome of a call in the state unknown', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    let database: string;
    let tenants: Tenants;
    let direct: DirectAccess;
    let receiver: Awaited<ReturnType<typeof startReceiver>>;
    let answer: (response: ServerResponse) => unknown;
    let cores: RunningCore[];

    beforeEach(async () => {
      // The clock must not be ahead of PostgreSQL's own clock, not even after the month that passes in these tests.
      clock.set('2026-08-03T09:00:00.000Z');
      ({ database, tenants } = await databaseWithTenants(kind));
      direct = await openDirect(database, clock);
      answer = (response) => response.writeHead(202).end();
      receiver = await startReceiver((_, response) => answer(response));
      cores = [];
    });
    afterEach(async () => {
      await stop();
      await receiver.close();
      await direct.close();
    });

    const webhook = () => ({ DIALER: 'webhook', DIALER_URL: receiver.url, DIALER_SECRETS: signingSecret });
    async function start(environment: Record<string, string> = {}): Promise<RunningCore> {
      const core = await startCoreHere(database, { clock, environment: { ...webhook(), ...environment } });
      cores.push(core);
      return core;
    }
    async function stop(): Promise<void> {
      for (const core of cores.splice(0)) await core.close();
    }
    const signInAda = (url: string) => signIn(url, 'ada@example.com');
    /** @returns the contact ID */
    async function place(url: string): Promise<string> {
      const { keyValue } = await createKey(url, await signInAda(url));
      return textAt(await placeCall(url, tenants.campaign.id, keyValue, { contact: { phone } }), 'contactId');
    }
    const calls = ({ url }: RunningCore) => `${url}/console/campaigns/${tenants.campaign.id}/calls`;
    const show = async (core: RunningCore, contactId: string) =>
      callDetailsSchema.parse((await ask('GET', `${calls(core)}/${contactId}`, { cookie: await signInAda(core.url) })).json);
    const row = (contactId: string) => direct.storage.database.read('calls').where({ contact_id: contactId }).first();
    const untilUnknown = (contactId: string) => until(async () => (await row(contactId))?.state === 'unknown');
    const untilTaken = (contactId: string) => until(async () => (await row(contactId))?.handoff === 'taken');
    async function report({ url }: RunningCore, handoffId: string, outcome: object): Promise<number> {
      const raw = JSON.stringify({ handoffId, ...outcome });
      const headers = sign('any', raw, signingSecret, Math.floor(clock.now() / 1_000));
      return (await ask('POST', `${url}/dialer/outcomes`, { raw, headers: { ...headers } })).status;
    }
    async function counted({ managementUrl }: RunningCore, metric: string): Promise<number> {
      const lines = (await ask('GET', `${managementUrl}/metrics`)).text.split('\n').filter((line) => line.startsWith(metric));
      return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    }

    /** Each function leaves a call in the state `unknown`, and a running core that uses the webhook. @returns the call's contact ID */
    const causes: Readonly<Record<string, () => Promise<string>>> = {
      async 'after a lost response'() {
        answer = (response) => response.destroy();
        return place((await start()).url);
      },
      async 'after a core was killed during a hand-off'() {
        answer = () => undefined;
        const killed = await spawnCore(database, webhook());
        const contactId = await place(killed.url);
        await receiver.until(1);
        await killed.stop('SIGKILL');
        clock.set(new Date(Date.now() + dialingLimits.lease.toMillis() + 1_000).toISOString());
        await start();
        return contactId;
      },
      async 'after four hours without an outcome'() {
        const contactId = await place((await start()).url);
        await untilTaken(contactId);
        clock.advance({ hours: 4 });
        return contactId;
      },
      async 'after thirty days without a dialer'() {
        const contactId = await place((await start()).url);
        await untilTaken(contactId);
        await stop();
        clock.advance({ days: 30, hours: 4, seconds: 1 });
        await acceptClock(direct.ports, operator.actor);
        await start({ DIALER: 'off' });
        await untilUnknown(contactId);
        await stop();
        await start();
        return contactId;
      },
    };
    for (const [cause, makeUnknown] of Object.entries(causes)) {
      it(`replaces this state ${cause}, even if two outcomes are reported at the same time, and is shown everywhere`, async () => {
        const contactId = await makeUnknown();
        await untilUnknown(contactId);
        const core = await start();
        clock.advance({ minutes: 3 });
        const told = { detail: 'Talked.', durationSeconds: 42, optOut: true };
        const states = ['completed', 'busy'] as const;
        const statuses = await Promise.all(states.map((state, n) => report(cores[n] ?? core, contactId, { ...told, state })));
        expect(statuses).to.deep.equal([204, 204]);
        const now = new Date(clock.now()).toISOString();
        const { call, durationSeconds, toldLateAt } = await show(core, contactId);
        expect(call).to.deep.include({ detail: 'Talked.', endedAt: now });
        expect(call.state).to.be.oneOf(states);
        expect(call.dialedAt).to.be.a('string');
        expect({ durationSeconds, toldLateAt }).to.deep.equal({ durationSeconds: 42, toldLateAt: now });

        clock.advance({ minutes: 1 });
        expect(await report(core, contactId, { state: 'no_answer', detail: 'Another.' })).to.equal(204);
        expect(await show(core, contactId)).to.deep.equal({ call, durationSeconds, toldLateAt, ...(await readRest(core, contactId)) });
        const cookie = await signInAda(core.url);
        const listed = async (state: string) =>
          callsSchema.parse((await ask('GET', `${calls(core)}?state=${state}`, { cookie })).json).calls.map((one) => one.contactId);
        expect([await listed('unknown'), await listed(call.state)]).to.deep.equal([[], [contactId]]);
        const summary = callsSummarySchema.parse((await ask('GET', `${calls(core)}/summary?timeZone=UTC`, { cookie })).json);
        const charted = summary.days.flatMap(({ states }) => Object.entries(states));
        // A chart shows the last thirty days.
        expect(charted).to.deep.equal(cause.includes('thirty') ? [] : [[call.state, 1]]);
        const outcomes = await Promise.all(cores.map((one) => counted(one, 'callkey_outcomes_total')));
        expect(outcomes.reduce((sum, count) => sum + count)).to.equal(1);
        const { keyValue } = await createKey(core.url, cookie);
        expect((await placeCall(core.url, tenants.campaign.id, keyValue, { contact: { phone } })).status).to.equal(403);
      });
    }

    it('is accepted while the dialer is off, along with an opt-out', async () => {
      answer = (response) => response.destroy();
      const contactId = await place((await start()).url);
      await untilUnknown(contactId);
      await stop();
      expect(await report(await start({ DIALER: 'off' }), contactId, { state: 'completed', optOut: true })).to.equal(204);
      expect((await row(contactId))?.state).to.equal('completed');
    });

    const readRest = async (core: RunningCore, contactId: string) => {
      const { timeZone, variables, notBefore, notAfter, attempts, firstAttemptAt, nextAttemptAt } = await show(core, contactId);
      return { timeZone, variables, notBefore, notAfter, attempts, firstAttemptAt, nextAttemptAt };
    };

    it("isn't overwritten when a dialer with an expired claim gets its response", async () => {
      const held: ServerResponse[] = [];
      answer = (response) => held.push(response);
      const core = await start();
      const contactId = await place(core.url);
      await receiver.until(1);
      clock.advance({ seconds: 31 });
      await untilUnknown(contactId);
      expect(await report(core, contactId, { state: 'completed' })).to.equal(204);
      for (const response of held) response.writeHead(202).end();
      await eventually(async () => expect(await counted(core, 'callkey_dialer_leases_lost_total')).to.equal(1));
      expect((await show(core, contactId)).call.state).to.equal('completed');
    });

    it("restarts the call's retention period, and changes nothing once the call's data has been erased", async () => {
      answer = (response) => response.destroy();
      const core = await start();
      const [told, untold] = [await place(core.url), await place(core.url)];
      await Promise.all([told, untold].map(untilUnknown));
      clock.advance({ hours: 20 });
      // The reported end would make the call's data due to be erased with the other call's.
      const endedAt = new Date(clock.now() - 20 * 3_600_000).toISOString();
      expect(await report(core, told, { state: 'busy', detail: 'Try later.', endedAt })).to.equal(204);
      /** Restarts the core after some time, and waits until it has erased data. */
      const eraseAfter = async (hours: number) => {
        await stop();
        clock.advance({ hours });
        const erasing = await start({ RETENTION_DAYS: '1' });
        await until(() => erasing.log.some(({ msg }) => msg === 'audit events sealed'));
        return erasing;
      };
      const next = await eraseAfter(10);
      expect((await show(next, told)).call.contact.phone).to.equal(phone);
      expect((await show(next, untold)).call.contact.phone).to.equal(null);
      expect(await report(next, untold, { state: 'completed', detail: 'Ada asked why.' })).to.equal(204);
      expect((await show(next, untold)).call).to.deep.include({ state: 'unknown', detail: null });
      expect((await show(await eraseAfter(15), told)).call).to.deep.include({ state: 'busy', detail: null });
    });
  });
});
