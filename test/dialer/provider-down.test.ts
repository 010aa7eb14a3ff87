import { expect } from 'chai';
import { callsSummarySchema } from '#contract/console/calls.ts';
import { freePort } from '../../scripts/support/postgres.ts';
import { fakeClock } from '../support/clock.ts';
import { type CoreHarness, openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, untilServed } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/provider.ts';
import { insertCalls, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const placed = 50;

describe('a provider that is down', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    let harness: CoreHarness;
    let port: number;
    let receiver: Awaited<ReturnType<typeof startReceiver>> | undefined;

    before(async () => {
      port = await freePort(10_000);
      const url = `http://127.0.0.1:${port}/calls`;
      const environment = { DIALER: 'webhook', DIALER_URL: url, DIALER_SECRETS: signingSecret, DIALER_CONCURRENCY: '50' };
      harness = await openCore({ kind, clock, environment });
    });
    after(async () => {
      await harness.close();
      await receiver?.close();
    });

    it('gets each due call once when it returns after a minute', async () => {
      const { core, direct, tenants } = harness;
      const cookie = await signIn(core.url, 'ada@example.com');
      const { database } = direct.storage;
      const ids = Array.from({ length: placed }, (_, n) => `c${n}`);
      await insertCalls(direct, tenants, ids);
      const count = async (where: object): Promise<number> =>
        Number((await database.read('calls').where(where).count({ n: '*' }).first<{ n: number }>()).n);
      const trouble = async () => {
        const path = `/console/campaigns/${tenants.campaign.id}/calls/summary?timeZone=UTC`;
        const answer = await untilServed(() => ask('GET', core.url + path, { cookie }));
        return callsSummarySchema.parse(answer.json).dialerTrouble;
      };
      const metric = async () =>
        Number(/^callkey_dialer_trouble_seconds (.+)$/m.exec((await ask('GET', `${core.managementUrl}/metrics`)).text)?.[1]);

      await until(async () => (await count({ handoff: 'retry' })) === placed);
      const since = clock.now();
      expect([await trouble(), await metric()]).to.deep.equal([null, 0]);
      // A call that couldn't leave in time was claimed once more, and waits longer for its next attempt.
      const [last]: (number | null)[] = await database.read('calls').orderBy('due_at', 'desc').limit(1).pluck('due_at');
      clock.advance({ milliseconds: Math.max(65_000, (last ?? 0) - since) });
      const due = async () => (await database.read('calls').where('due_at', '<=', clock.now())).length;
      await until(async () => (await due()) === 0 && (await count({ handoff: 'retry' })) === placed);
      await until(async () => (await trouble()) !== null);
      expect((await trouble())?.reason).to.equal('connection refused');
      expect(Date.parse((await trouble())?.since ?? '')).to.be.at.most(since);
      expect(await metric()).to.be.at.least(60);
      const warnings = core.log.filter(({ msg }) => msg === "the provider isn't accepting calls");
      // One a minute, and this may take several on a busy machine.
      expect([...new Set(warnings.map(({ reason }) => reason))]).to.deep.equal(['connection refused']);

      receiver = await startReceiver(undefined, port);
      clock.advance({ minutes: 5 });
      await receiver.until(placed);
      await until(async () => (await count({ handoff: 'taken' })) === placed);
      expect(new Set(receiver.received.map(({ handoff }) => handoff.handoffId)).size).to.equal(receiver.received.length);
      expect(await count({ state: 'unknown' })).to.equal(0);
      await until(async () => (await trouble()) === null);
      expect(await metric()).to.equal(0);
    });
  });
});
