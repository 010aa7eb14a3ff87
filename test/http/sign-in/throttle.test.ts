import { expect } from 'chai';
import { operator } from '../../../core/domain/audit/audit.ts';
import { createUser } from '../../../core/domain/directory/users.ts';
import { fakeClock } from '../../support/clock.ts';
import { type CoreOptions, openCore, type RunningCore, startCoreHere } from '../../support/core.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { ask, readCode, readCookies } from '../../support/http.ts';
import { heldPasswords } from '../../support/ports.ts';
import { openOnce } from '../../support/suites.ts';
import { password, signIn } from '../../support/tenants.ts';

describe('the sign-in throttle', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    const environment = { TRUSTED_PROXIES: '127.0.0.1' };
    const its = openOnce(() => openCore({ kind, clock, environment }));
    beforeEach(async () => {
      clock.set('2026-11-21T09:00:00.000Z');
      await counters().delete();
      await its.direct.storage.database.write('sessions').delete();
    });

    /** Starts another core on the same database. */
    const startAnother = (options: CoreOptions = {}) => startCoreHere(its.database, { clock, environment, ...options });
    const counters = () => its.direct.storage.database.write('sign_in_attempts');
    /** An address that the other guesses don't come from. */
    const elsewhere = '203.0.113.1';
    const readPoints = async (counter: string): Promise<number[]> =>
      (await counters().where('key', 'like', `${counter}:%`)).map(({ attempts }: { attempts: number }) => attempts);
    type Guess = { at?: RunningCore; from?: string; cookie?: string };
    const tryPassword = (email: string, attempt: string, { at = its.core, from = '198.51.100.1', cookie }: Guess = {}) =>
      ask('POST', `${at.url}/console/session`, {
        body: { email, password: attempt },
        headers: { 'X-Forwarded-For': from },
        ...(cookie === undefined ? {} : { cookie }),
      });
    /** Sets the counter as if a hundred wrong passwords had been tried for one account, from many addresses. */
    const fillFor = async (email: string, counter: string) => {
      await tryPassword(email, 'wrong');
      await counters().where('key', 'like', `${counter}:%`).update({ attempts: 100 });
    };

    it('counts each of many concurrent guesses that it lets through, but no others', async () => {
      const answers = await Promise.all(Array.from({ length: 30 }, () => tryPassword('ada@example.com', 'wrong')));
      expect(answers.filter(({ status }) => status === 401)).to.have.length(10);
      for (const counter of ['address', 'network24', 'pair', 'pairs24']) expect(await readPoints(counter), counter).to.deep.equal([10]);
      expect(await readPoints('account')).to.deep.equal([1]);
    });

    // The counters themselves are tested on both databases, in storage/throttle.test.ts.
    if (kind === 'postgres') return;

    for (const [route, more] of [
      ['password', { newPassword: 'a new and longer one' }],
      ['second-factor', {}],
    ] as const)
      it(`counts wrong current passwords sent to ${route}, but still lets that user sign in`, async () => {
        const cookie = await signIn(its.core.url, 'ada@example.com');
        const statuses: number[] = [];
        for (let n = 0; n < 11; n++) {
          const body = { currentPassword: `wrong ${n}`, ...more };
          statuses.push((await ask('POST', `${its.core.url}/console/${route}`, { cookie, body })).status);
        }
        expect(statuses).to.deep.equal([...Array.from({ length: 10 }, () => 422), 429]);
        expect((await tryPassword('ada@example.com', password, { from: '127.0.0.1' })).status).to.equal(201);
      });

    describe('wrong passwords', () => {
      it('for one account from one address are throttled after ten, with Retry-After', async () => {
        const statuses: number[] = [];
        for (let attempt = 0; attempt < 11; attempt++) statuses.push((await tryPassword('sue@example.com', `wrong ${attempt}`)).status);
        expect(statuses).to.deep.equal([...Array.from({ length: 10 }, () => 401), 429]);
        const answer = await tryPassword('sue@example.com', password);
        expect([answer.status, readCode(answer)]).to.deep.equal([429, 'too-many-requests']);
        expect(Number(answer.headers['retry-after'])).to.be.within(1, 15 * 60);
      });

      it("from all addresses of one network don't lock the account out in other networks, but those of many networks do", async () => {
        const wrong = async (from: string) => (await tryPassword('nia@example.com', 'wrong', { from })).status;
        const create = { email: 'nia@example.com', name: 'Nia', userType: 'staff', accountId: null, partnerId: null } as const;
        await createUser(its.direct.ports, operator, create, password);
        // A household's /56, and then all of a customer's /48.
        for (let n = 0; n < 101; n++) expect(await wrong(`2001:db8:1:${n.toString(16)}::1`), `${n}`).to.equal(n < 100 ? 401 : 429);
        for (let n = 1; n < 30; n++) await wrong(`2001:db8:1:${(n * 256).toString(16)}::1`);
        expect(await readPoints('account')).to.deep.equal([1]);
        expect((await tryPassword('nia@example.com', password, { from: '2001:db8:2::1' })).status).to.equal(201);
        for (let n = 0; n < 19; n++) expect(await wrong(`192.0.${n}.1`)).to.equal(401);
        expect(await wrong('192.0.20.1')).to.equal(429);
      });

      it('in a browser that has signed in before count only for that browser', async () => {
        const cookies = readCookies(await tryPassword('otto@example.com', password, { from: elsewhere })).split('; ');
        const device = cookies.filter((cookie) => cookie.startsWith('callkey_device')).join('; ');
        for (const counter of ['address', 'account', 'pair']) await fillFor('otto@example.com', counter);
        const unsigned = device.replaceAll(/; [^;]*\.sig=[^;]*/g, '');
        for (const guess of [{}, { cookie: unsigned }])
          expect((await tryPassword('otto@example.com', password, guess)).status).to.equal(429);
        expect((await tryPassword('otto@example.com', password, { cookie: device })).status).to.equal(201);
        const statuses: number[] = [];
        for (let n = 0; n < 11; n++) statuses.push((await tryPassword('otto@example.com', 'wrong', { cookie: device })).status);
        expect(statuses).to.deep.equal([...Array.from({ length: 10 }, () => 401), 429]);
        await counters().whereNot('key', 'like', 'device:%').delete();
        expect((await tryPassword('otto@example.com', password)).status).to.equal(201);
      });
    });

    describe('while password checks are slow', () => {
      const held = heldPasswords();
      const busy = openOnce(() => startAnother({ passwords: held.passwords }));
      /** One attempt for each of many accounts, all from one network. */
      const crowd = (size: number) =>
        Array.from({ length: size }, (_, n) => () => tryPassword(`x${n}@example.com`, 'wrong', { at: busy, from: `203.0.113.${n}` }));

      it("doesn't add rows for sign-ins that are rejected because too many are waiting", async () => {
        const answers = await held.together(crowd(90));
        const checked = answers.filter(({ status }) => status === 401).length;
        expect(checked).to.be.lessThan(90);
        // All addresses are in one /24, which has a single counter.
        expect((await counters()).length).to.equal(5 * checked + 1);
      });

      it('still blocks an account after ten wrong passwords while other sign-ins are rejected because too many are waiting', async () => {
        const attempt = () => tryPassword('crowd@example.com', 'wrong', { at: busy });
        for (let n = 0; n < 9; n++) await attempt();
        const answers = await held.together([...crowd(100), attempt]);
        expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([401, 429]));
        expect(answers.map(({ text }) => text).join()).to.contain('Too many people are signing in.');
        // Each attempt was either checked or rejected because too many were waiting, and ten are checked in total.
        if (answers.at(-1)?.status === 429) expect((await attempt()).status).to.equal(401);
        expect((await attempt()).status).to.equal(429);
      });
    });
  });
});
