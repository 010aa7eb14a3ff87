import { expect } from 'chai';
import { sweepSessions } from '../../../core/domain/sign-in/sessions.ts';
import { type FakeClock, fakeClock } from '../../support/clock.ts';
import { type CoreOptions, openCore, type RunningCore, startCoreHere } from '../../support/core.ts';
import { ask } from '../../support/http.ts';
import { openOnce } from '../../support/opened.ts';
import { costlyPasswords } from '../../support/ports.ts';
import { signIn } from '../../support/tenants.ts';

describe('signing in', () => {
  let clock: FakeClock;

  before(() => {
    clock = fakeClock();
  });
  const harness = openOnce(() => openCore({ clock, environment }));
  beforeEach(async () => {
    clock.set('2026-11-21T09:00:00.000Z');
    await counters().delete();
    await harness.direct.storage.database.write('sessions').delete();
  });

  const environment = { TRUSTED_PROXIES: '127.0.0.1' };
  /** Starts another core on the same database. */
  const startAnother = (options: CoreOptions = {}) => startCoreHere(harness.database, { clock, environment, ...options });
  const counters = () => harness.direct.storage.database.write('sign_in_attempts');
  type Guess = { at?: RunningCore; from?: string; cookie?: string };
  const tryPassword = (email: string, attempt: string, { at = harness.core, from = '198.51.100.1', cookie }: Guess = {}) =>
    ask('POST', `${at.url}/console/session`, {
      body: { email, password: attempt },
      headers: { 'X-Forwarded-For': from },
      ...(cookie === undefined ? {} : { cookie }),
    });
  const session = (cookie: string) => ask('GET', `${harness.core.url}/console/session`, { cookie });

  describe('while password checks are slow, the throttle', () => {
    const busy = openOnce(() => startAnother({ passwords: costlyPasswords() }));

    it("doesn't add rows for sign-ins that are rejected because too many are waiting", async () => {
      const answers = await Promise.all(
        Array.from({ length: 90 }, (_, n) => tryPassword(`x${n}@example.com`, 'wrong', { at: busy, from: `203.0.113.${n}` })),
      );
      const checked = answers.filter(({ status }) => status === 401).length;
      expect(checked).to.be.lessThan(90);
      // All addresses are in one /24, which has a single counter.
      expect((await counters()).length).to.equal(5 * checked + 1);
    });

    it('still blocks an account after ten wrong passwords while other sign-ins are rejected because too many are waiting', async () => {
      const attempt = () => tryPassword('crowd@example.com', 'wrong', { at: busy });
      for (let n = 0; n < 9; n++) await attempt();
      const crowd = await Promise.all(
        Array.from({ length: 100 }, (_, n) => tryPassword(`c${n}@example.com`, 'wrong', { at: busy, from: `203.0.113.${n}` })).concat(
          attempt(),
        ),
      );
      expect(new Set(crowd.map(({ status }) => status))).to.deep.equal(new Set([401, 429]));
      expect(crowd.map(({ text }) => text).join()).to.contain('Too many people are signing in.');
      // Each attempt was either checked or rejected because too many were waiting, and ten are checked in total.
      if (crowd.at(-1)?.status === 429) expect((await attempt()).status).to.equal(401);
      expect((await attempt()).status).to.equal(429);
    });
  });

  describe('if the clock is set back, sessions', () => {
    it('stay ended when the clock has caught up', async () => {
      clock.advance({ days: 400 });
      const cookie = await signIn(harness.core.url, 'ada@example.com');
      clock.advance({ days: -400 });
      await sweepSessions(harness.direct.ports);
      clock.advance({ days: 400 });
      expect((await session(cookie)).status).to.equal(401);
    });

    it('continue if they were just seen and the clock changed by only a few minutes', async () => {
      clock.advance({ minutes: 5 });
      const cookie = await signIn(harness.core.url, 'ada@example.com');
      clock.advance({ minutes: -5 });
      expect((await session(cookie)).status).to.equal(200);
      const [latest]: { last_seen_at: number }[] = await harness.direct.storage.database
        .read('sessions')
        .orderBy('started_at', 'desc')
        .limit(1);
      expect(latest?.last_seen_at).to.equal(clock.now());
    });
  });
});
