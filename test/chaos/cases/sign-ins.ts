import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, ask, cookiesOf } from '../../support/http.ts';
import { password } from '../../support/tenants.ts';
import { callBody, openScene, stopAndCompare } from '../environment.ts';
import type { Case } from '../run.ts';

/** In ms, for someone who signs in. The short version runs beside other tests, and only notes how long it took. */
const promised = 10_000;
const patience = 60_000;

/** Networks of as many providers as there are, and every other time one provider's. */
function newNetwork(n: number): string {
  const group = () => randomInt(0x1_0000).toString(16);
  if (n % 3 === 0) return `2001:db8:${group()}::1`;
  return n % 3 === 1 ? `${randomInt(1, 224)}.${randomInt(256)}.${randomInt(256)}.1` : `2${randomInt(0x1000).toString(16)}:${group()}::1`;
}

/** A flood of sign-ins for invented users, each from a network of its own; beside it, people sign in, and a quiet key places calls. */
export const signIns: Case = {
  name: 'sign-ins',
  title: 'a flood of sign-ins from ever new networks',
  async attack(trial) {
    const scene = await openScene(trial, { environment: { TRUSTED_PROXIES: '127.0.0.1' } });
    const { ledger } = scene;
    const { url } = scene.core();
    const trySignIn = (email: string, secret: string, from: string, cookie?: string): Promise<Answer> => {
      const headers = { 'X-Forwarded-For': from };
      return ask('POST', `${url}/console/session`, { body: { email, password: secret }, headers, ...(cookie ? { cookie } : {}) });
    };
    const known = cookiesOf(await trySignIn('ada@example.com', password, '198.51.100.1'));

    let attempts = 0;
    let isFlooding = true;
    trial.cleanup.defer(() => {
      isFlooding = false;
    });
    const flooding = Array.from({ length: trial.isQuick ? 64 : 256 }, async () => {
      while (isFlooding) await trySignIn(`nobody${++attempts}@example.com`, 'a password', newNetwork(attempts)).catch(() => undefined);
    });
    let quiet = 0;
    const placing = (async () => {
      for (; isFlooding; quiet++) {
        const { status } = await ledger.place(url, scene.campaignId, scene.key, callBody(`quiet-${quiet}`));
        if (status !== 202) ledger.fail(`a call of a quiet key was answered ${status}`);
        await pause(100);
      }
    })();

    const start = performance.now();
    const waits: number[] = [];
    for (let n = 0; n < (trial.isQuick ? 1 : 10); n++) {
      await pause(500);
      const since = performance.now();
      let answer = await trySignIn('ada@example.com', password, `192.0.2.${n}`);
      while (answer.status === 429 && performance.now() - since < patience) {
        await pause(Number(answer.headers['retry-after']) * 1_000);
        answer = await trySignIn('ada@example.com', password, `192.0.2.${n}`);
      }
      const waited = performance.now() - since;
      waits.push(waited);
      if (answer.status !== 201 || (waited > promised && !trial.isQuick))
        ledger.fail(`a right password got ${answer.status} after ${Math.round(waited)} ms`);
      const again = await trySignIn('ada@example.com', password, newNetwork(n), known);
      if (again.status !== 201) ledger.fail(`a known browser was answered ${again.status}`);
    }
    const perSecond = Math.round(attempts / ((performance.now() - start) / 1_000));
    isFlooding = false;
    await Promise.all([...flooding, placing]);
    ledger.note(
      `at ${perSecond} attempts per second, a new browser was in after ${Math.round(Math.max(...waits))} ms at most, and a quiet key placed ${quiet} calls`,
    );
    await stopAndCompare(scene);
  },
};
