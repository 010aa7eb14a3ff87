import { expect } from 'chai';
import { onEachDatabase } from '../../support/databases.ts';
import { ask, readCookies, textAt } from '../../support/http.ts';
import { secondFactorSuite } from '../../support/session-suite.ts';
import { authenticator, enroll, password } from '../../support/tenants.ts';

describe('second-factor codes', () => {
  onEachDatabase((kind) => {
    const at = secondFactorSuite(kind);
    const {
      tables,
      startAnother,
      elsewhere,
      newUser,
      newUserWithout,
      listActions,
      tryPassword,
      enterCode,
      inSession,
      halfOpen,
      signInWith,
    } = at;

    for (const source of ['the app', 'a list for recovery'] as const)
      it(`from ${source} work only once, even if two cores receive them at the same time`, async () => {
        const { email, app, recoveryCodes } = await newUser();
        const code = source === 'the app' ? app.code() : (recoveryCodes[0] ?? '');
        const other = await startAnother();
        const waiting = await Promise.all(
          [at.core, other, at.core, other].map(async (where) => ({ at: where, cookie: await halfOpen(email, { at: where }) })),
        );
        const answers = await Promise.all(waiting.map(({ cookie, ...where }) => enterCode(cookie, code, where)));
        expect(answers.map(({ status }) => status).toSorted()).to.deep.equal([201, 401, 401, 401]);
      });

    describe('from the app', () => {
      it("work if they're from the previous or next time step, but not if they're two steps away", async () => {
        const { email, app } = await newUser();
        expect((await signInWith(email, app.code(-2))).status).to.equal(401);
        expect((await signInWith(email, app.code(-1))).status).to.equal(201);
        expect((await signInWith(email, app.code(2))).status).to.equal(401);
        expect((await signInWith(email, app.code(1))).status).to.equal(201);
        expect((await signInWith(email, app.code(0))).status, 'an older code than the last one used').to.equal(401);
      });

      it("don't work at sign-in if they have confirmed the second factor", async () => {
        const { cookie, email } = await newUserWithout();
        const begun = await inSession('POST', '/console/second-factor', cookie, { currentPassword: password });
        const code = authenticator(textAt(begun, 'secret'), at.clock.now).code();
        await inSession('POST', '/console/second-factor/confirmation', cookie, { code });
        expect((await signInWith(email, code)).status).to.equal(401);
      });

      it('work again after the clock was far ahead', async () => {
        const { email, app } = await newUser();
        at.clock.advance({ days: 30 });
        expect((await signInWith(email, app.code())).status).to.equal(201);
        at.clock.advance({ days: -30 });
        expect((await signInWith(email, app.code())).status).to.equal(201);
      });

      it('may contain spaces and dashes, and digits of any script', async () => {
        const { email, app } = await newUser();
        for (const zero of ['0', '\uFF10', '\u0660', '\u06F0', '\u0966', '\u{1D7CE}']) {
          const digits = [...app.code()].map((digit) => String.fromCodePoint((zero.codePointAt(0) ?? 0) + Number(digit)));
          const typed = ` ${digits.slice(0, 3).join('')}\u00A0\u2013${digits.slice(3).join('')}\u200F`;
          expect((await signInWith(email, typed)).status, zero).to.equal(201);
          at.clock.advance({ seconds: 60 });
        }
      });
    });

    describe('for recovery', () => {
      it('work once, in any notation, and their use is recorded', async () => {
        const { email, recoveryCodes, id } = await newUser();
        const [first = '', second = '', ...others] = recoveryCodes;
        expect((await signInWith(email, first)).status).to.equal(201);
        expect((await signInWith(email, first)).status).to.equal(401);
        const misread = second.toUpperCase().replace('-', ' ').replaceAll('0', 'O').replaceAll('1', 'l');
        expect((await signInWith(email, misread)).status).to.equal(201);
        const notations = [
          ...['\u2013', '\u2014', '\u2010', '\u2011', '\u2212', '\uFF0D', ' \u2013 ', '\u00AD'].map(
            (dash) => (code: string) => code.replace('-', dash),
          ),
          (code: string) => code.replace(/[!-~]/g, (c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0)),
        ];
        for (const [index, code] of others.entries())
          expect((await signInWith(email, notations[index]?.(code) ?? code)).status, String(index)).to.equal(201);
        expect((await listActions(id)).filter((action) => action === 'recovery-code.used')).to.have.length(10);
      });

      it('work only for their own user', async () => {
        const [one, other] = [await newUser(), await newUser()];
        expect((await signInWith(one.email, other.recoveryCodes[0] ?? '')).status).to.equal(401);
        expect((await signInWith(one.email, other.app.code())).status).to.equal(401);
      });
    });

    // The counters themselves are tested on both databases, in storage/throttle.test.ts.
    if (kind === 'postgres') return;
    describe('that someone guesses', () => {
      beforeEach(() => tables().write('sign_in_attempts').delete());
      const toDevice = (cookies: string) =>
        cookies
          .split('; ')
          .filter((each) => each.includes('callkey_device'))
          .join('; ');
      /** Signs in on a device that has these cookies. */
      const signInOn = async (device: string, email: string, code: string) =>
        enterCode(`${await halfOpen(email, { cookie: device })}; ${device}`, code);
      /** The counters of the current test's user. */
      const wrongCodes = () => tables().write('sign_in_attempts').where('key', 'like', 'code%');

      it('count together for all browsers that the user signed in with before there was a second factor', async () => {
        const { email, cookie } = await newUserWithout();
        const devices: string[] = [];
        for (let n = 0; n < 5; n++) devices.push(toDevice(readCookies(await tryPassword(email))));
        const { app } = await enroll(at.core.url, cookie, at.clock);
        for (const device of devices) expect((await signInOn(device, email, '000000')).status).to.equal(401);
        await wrongCodes().where({ attempts: 5 }).update({ attempts: 20 });
        for (const device of devices) expect((await signInOn(device, email, app.code())).status).to.equal(429);
      });

      it('are limited to a hundred per day for all browsers of the user together, and others use up only twenty of them', async () => {
        const { email, app } = await newUser();
        const devices: string[] = [];
        for (let n = 0; n < 3; n++) {
          at.clock.advance({ seconds: 60 });
          devices.push(toDevice(readCookies(await signInWith(email, app.code()))));
        }
        expect((await signInWith(email, '000000')).status).to.equal(401);
        await wrongCodes().where({ attempts: 1 }).update({ attempts: 20 });
        expect((await signInWith(email, '000000')).status).to.equal(429);
        await wrongCodes().where('key', 'like', 'codes:%').where({ attempts: 20 }).update({ attempts: 98 });
        const statuses: number[] = [];
        for (const device of devices) statuses.push((await signInOn(device, email, '000000')).status);
        expect(statuses).to.deep.equal([401, 401, 429]);
      });

      it('are throttled after ten attempts, even with the correct password each time', async () => {
        const { email, app } = await newUser();
        const from = elsewhere();
        const statuses: number[] = [];
        for (let n = 0; n < 6; n++) {
          const answer = await tryPassword(email, password, { from });
          statuses.push(answer.status);
          if (answer.status === 202) statuses.push((await enterCode(readCookies(answer), '000000', { from })).status);
        }
        expect(statuses).to.deep.equal([202, 401, 202, 401, 202, 401, 202, 401, 202, 401, 429]);
        expect((await enterCode(await halfOpen(email), app.code(), { from })).status, 'a valid code').to.equal(429);
        expect((await signInWith(email, app.code())).status, 'from another address').to.equal(201);
      });

      it('are counted in the metrics only after a correct password, and only if they were checked', async () => {
        const counts = async (): Promise<string[]> =>
          (await ask('GET', `${at.core.managementUrl}/metrics`)).text.match(/^callkey_(second_factor_codes|sign_ins)_total.*$/gm) ?? [];
        const { email } = await newUser();
        const cookie = await halfOpen(email);
        const before = await counts();
        const crossSite = { cookie, body: { code: '000000' }, headers: { 'Sec-Fetch-Site': 'cross-site' } };
        const answers = [
          await enterCode('', '000000'),
          await enterCode(cookie, '0'.repeat(101)),
          await ask('POST', `${at.core.url}/console/session/second-factor`, crossSite),
        ];
        expect(answers.map(({ status }) => status)).to.deep.equal([401, 422, 403]);
        expect(await counts()).to.deep.equal(before);
        expect((await enterCode(cookie, '000000')).status).to.equal(401);
        const added = (await counts()).filter((line) => !before.includes(line));
        expect(added.map((line) => line.replace(/ .*/, ''))).to.have.members([
          'callkey_sign_ins_total{result="refused"}',
          'callkey_second_factor_codes_total{result="refused"}',
        ]);
      });

      it('are throttled only after ten more attempts if a valid code was entered in between', async () => {
        const { email, app } = await newUser();
        const from = '203.0.113.77';
        await tables().write('sign_in_attempts').delete();
        await enterCode(await halfOpen(email, { from }), '000000', { from });
        expect((await enterCode(await halfOpen(email, { from }), app.code(), { from })).status).to.equal(201);
        const left = await tables().read('sign_in_attempts').orderBy('key').select('key', 'attempts');
        expect(left.map(({ key, attempts }) => [key.split(':')[0], attempts])).to.deep.equal([
          ['account', 0],
          ['address', 2],
          // Wrong codes count for a day, so that someone who knows the password gets only a few guesses between two sign-ins of the user.
          ['code', 1],
          ['codes', 1],
          ['network24', 2],
        ]);
        const cookie = await halfOpen(email, { from });
        for (let n = 0; n < 9; n++) expect((await enterCode(cookie, '000000', { from })).status).to.equal(401);
        expect((await enterCode(cookie, '000000', { from })).status).to.equal(429);
      });

      it('are throttled after twenty wrong ones in a day, from anywhere, but recovery codes and known browsers still work', async () => {
        const { email, app, recoveryCodes, cookie } = await newUser();
        const [first = '', second = ''] = recoveryCodes;
        const known = readCookies(await signInWith(email, app.code()));
        at.clock.advance({ seconds: 60 });
        const waiting = await halfOpen(email);
        for (let n = 0; n < 20; n++) expect((await enterCode(waiting, '000000')).status).to.equal(401);
        const refused = await signInWith(email, app.code());
        expect(refused.status).to.equal(429);
        expect(Number(refused.headers['retry-after'])).to.be.within(23 * 3_600, 24 * 3_600);
        expect(refused.json['detail']).to.equal('Too many wrong codes. Enter a recovery code instead. Try again in 24 hours.');
        expect((await signInWith(email, first)).status).to.equal(201);
        expect((await signInOn(toDevice(known), email, app.code())).status, 'from a known browser').to.equal(201);
        expect((await inSession('DELETE', '/console/second-factor', cookie, { code: second })).status).to.equal(204);
      });

      it('no longer count once the second factor is set up again, neither at sign-in nor in a signed-in session', async () => {
        const { email, app: first, cookie, recoveryCodes } = await newUser();
        const remove = (code = '') => inSession('DELETE', '/console/second-factor', cookie, { code });
        await signInWith(email, '000000');
        expect((await remove('000000')).status).to.equal(401);
        await wrongCodes().whereIn('attempts', [1, 2]).update({ attempts: 20 });
        expect((await signInWith(email, first.code())).status).to.equal(429);
        expect((await remove('000000')).status).to.equal(429);
        expect((await remove(recoveryCodes[0])).status).to.equal(204);
        const { app } = await enroll(at.core.url, cookie, at.clock);
        expect((await signInWith(email, app.code())).status).to.equal(201);
        at.clock.advance({ seconds: 60 });
        expect((await remove(app.code())).status).to.equal(204);
      });

      it('are throttled even in a hijacked session', async () => {
        const { cookie } = await newUser();
        const answers: number[] = [];
        for (let n = 0; n < 11; n++) answers.push((await inSession('DELETE', '/console/second-factor', cookie, { code: '000000' })).status);
        expect(answers).to.deep.equal([...Array.from({ length: 10 }, () => 401), 429]);
      });
    });
  });
});
