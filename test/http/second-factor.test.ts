import { expect } from 'chai';
import { consoleRoutes } from '#contract/routes/console.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser, resetPassword } from '../../core/domain/directory/users.ts';
import { resealSecrets } from '../../core/domain/sign-in/second-factor.ts';
import { createSecretBox } from '../../core/server/sealed-secrets.ts';
import { type FakeClock, fakeClock, testRandomness } from '../support/clock.ts';
import { type RunningCore, startCoreHere, testSecret } from '../support/core.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask, readCode, readCookies, textAt } from '../support/http.ts';
import { authenticator, enroll, recoveryCodesIn } from '../support/second-factor.ts';
import { password, signIn } from '../support/tenants.ts';

const otherSecret = 'another secret for tests of at least 32 characters';

describe('a second factor', () => {
  onEachDatabase((kind) => {
    let harness: CoreHarness;
    let core: RunningCore;
    let clock: FakeClock;

    before(async () => {
      clock = fakeClock();
      harness = await openCore({ kind, clock, environment });
      ({ core } = harness);
    });
    after(() => harness.close());

    const environment = { TRUSTED_PROXIES: '127.0.0.1' };
    const database = () => harness.direct.storage.database;
    /** More cores on the same database, until the end of the test. */
    const others: RunningCore[] = [];
    async function startAnother(more: Record<string, string> = {}): Promise<RunningCore> {
      const other = await startCoreHere(harness.database, { clock, environment: { ...environment, ...more } });
      others.push(other);
      return other;
    }
    afterEach(async () => {
      for (const other of others.splice(0)) await other.close();
    });

    /** Throttle counters are by address, so each attempt has its own unless a test counts. */
    let addresses = 0;
    const elsewhere = () => `198.51.${++addresses >> 8}.${addresses & 255}`;

    type From = { at?: RunningCore; from?: string; cookie?: string };
    const asked = ({ from = elsewhere(), cookie }: From) => ({
      headers: { 'X-Forwarded-For': from },
      ...(cookie === undefined ? {} : { cookie }),
    });
    const tryPassword = (email: string, attempt = password, { at = core, ...from }: From = {}) =>
      ask('POST', `${at.url}/console/session`, { body: { email, password: attempt }, ...asked(from) });
    const enterCode = (cookie: string, code: string, { at = core, ...from }: From = {}) =>
      ask('POST', `${at.url}/console/session/second-factor`, { body: { code }, ...asked({ ...from, cookie }) });
    const inSession = (method: string, path: string, cookie: string, body?: object) =>
      ask(method, core.url + path, { cookie, ...(body === undefined ? {} : { body }) });
    const statusOf = async (cookie: string) => (await inSession('GET', '/console/session', cookie)).status;
    const halfOpen = async (email: string, from: From = {}) => readCookies(await tryPassword(email, password, from));
    const signInWith = async (email: string, code: string) => enterCode(await halfOpen(email), code);

    let users = 0;
    /** A new staff user with a second factor, signed in. */
    async function newUser() {
      const { email, cookie, id } = await newUserWithout();
      return { email, cookie, id, ...(await enroll(core.url, cookie, clock)) };
    }
    async function newUserWithout() {
      const email = `second-${++users}@example.com`;
      const input = { email, name: `Second ${users}`, userType: 'staff', accountId: null, partnerId: null } as const;
      const { user } = await createUser(harness.direct.ports, operator, input, password);
      return { email, id: user.id, cookie: await signIn(core.url, email) };
    }
    const actionsOf = async (id: string): Promise<string[]> =>
      database().read('audit_events').where({ subject_id: id }).orderBy('id').pluck('action');

    describe('being set up', () => {
      it('needs the password, and a code from the app, and then gives ten recovery codes once', async () => {
        const { cookie, email, id } = await newUserWithout();
        const begin = (currentPassword: string) => inSession('POST', '/console/second-factor', cookie, { currentPassword });
        expect((await begin('wrong')).status).to.equal(422);
        const begun = await begin(password);
        const secret = textAt(begun, 'secret');
        expect(begun.status).to.equal(201);
        expect(secret).to.match(/^[A-Z2-7]{32}$/);
        expect(begun.json['uri']).to.equal(`otpauth://totp/Callkey:${encodeURIComponent(email)}?secret=${secret}&issuer=Callkey`);
        const confirm = (code: string) => inSession('POST', '/console/second-factor/confirmation', cookie, { code });
        expect((await confirm('000000')).status).to.equal(401);
        expect((await tryPassword(email)).status, 'not in force yet').to.equal(201);
        const confirmed = await confirm(authenticator(secret, clock.now).code());
        expect(confirmed.status).to.equal(200);
        expect(new Set(recoveryCodesIn(confirmed.json)).size).to.equal(10);
        for (const code of recoveryCodesIn(confirmed.json)) expect(code).to.match(/^[0-9a-hjkmnp-tv-z]{5}-[0-9a-hjkmnp-tv-z]{5}$/);
        expect((await inSession('GET', '/console/session', cookie)).json['secondFactor']).to.equal(true);
        expect(await actionsOf(id)).to.include('second-factor.enabled');
      });

      it('starts again with another secret until it’s confirmed, and then is a conflict', async () => {
        const { cookie } = await newUserWithout();
        const begin = () => inSession('POST', '/console/second-factor', cookie, { currentPassword: password });
        const confirm = (code: string) => inSession('POST', '/console/second-factor/confirmation', cookie, { code });
        expect((await confirm('123456')).status, 'before it begins').to.equal(409);
        const [first, second] = [await begin(), await begin()].map((answer) => authenticator(textAt(answer, 'secret'), clock.now));
        expect((await confirm(first?.code() ?? '')).status).to.equal(401);
        expect((await confirm(second?.code() ?? '')).status).to.equal(200);
        expect([(await begin()).status, (await confirm(second?.code(1) ?? '')).status]).to.deep.equal([409, 409]);
      });

      it("can't be done by someone who only knows the password", async () => {
        const { email } = await newUser();
        const cookie = await halfOpen(email);
        expect((await inSession('POST', '/console/second-factor', cookie, { currentPassword: password })).status).to.equal(401);
        expect((await inSession('POST', '/console/second-factor/confirmation', cookie, { code: '123456' })).status).to.equal(401);
        expect((await inSession('DELETE', '/console/second-factor', cookie, { code: '123456' })).status).to.equal(401);
      });
    });

    describe('at sign-in', () => {
      it('has to follow the password, and opens a session with a new ID', async () => {
        const { email, app } = await newUser();
        const answer = await tryPassword(email);
        expect([answer.status, answer.json]).to.deep.equal([202, { secondFactor: true }]);
        const waiting = readCookies(answer);
        const entered = await enterCode(waiting, app.code());
        expect(entered.status).to.equal(201);
        expect(entered.json).to.deep.include({ secondFactor: true });
        const opened = readCookies(entered);
        expect([readCookies(answer), opened].map((cookies) => cookies.includes('callkey_device='))).to.deep.equal([false, true]);
        expect((await inSession('GET', '/console/session', opened)).text).to.equal(entered.text);
        expect(opened.split(';')[0]).not.to.equal(waiting.split(';')[0]);
        expect(await statusOf(waiting), 'the half-open one').to.equal(401);
      });

      it('allows nothing else until then, with the common 401 on every route', async () => {
        const { email } = await newUser();
        const cookie = await halfOpen(email);
        const common = (await ask('GET', `${core.url}/console/session`)).text;
        const answers: [string, number, string][] = [];
        for (const [name, { by, method, path }] of Object.entries(consoleRoutes)) {
          if (by !== 'session' || name === 'signOut') continue;
          const { status, text } = await inSession(method, path.replace(/:\w+/g, 'x'), cookie, method === 'GET' ? undefined : {});
          answers.push([name, status, text]);
        }
        expect(answers.filter(([, status, text]) => status !== 401 || text !== common)).to.deep.equal([]);
        expect((await inSession('DELETE', '/console/session', cookie)).status).to.equal(204);
        expect((await enterCode(cookie, '123456')).status).to.equal(401);
      });

      it('has to follow within ten minutes', async () => {
        const { email, app } = await newUser();
        const [inTime, late] = [await halfOpen(email), await halfOpen(email)];
        clock.advance({ minutes: 10 });
        expect((await enterCode(inTime, app.code())).status).to.equal(201);
        clock.advance({ milliseconds: 1 });
        expect((await enterCode(late, app.code(1))).status).to.equal(401);
      });

      it('isn’t asked for again in a session that someone had before: they can’t be given one', async () => {
        const { email, app, cookie: theirs } = await newUser();
        const attackers = await halfOpen(email);
        const entered = await enterCode(attackers, app.code());
        expect(await statusOf(attackers)).to.equal(401);
        expect(await statusOf(readCookies(entered))).to.equal(200);
        expect(await statusOf(theirs), 'the user’s own').to.equal(200);
      });

      it('ends with a changed password or a disabled user', async () => {
        const { email, app, id } = await newUser();
        const cookie = await halfOpen(email);
        const user = (await harness.direct.ports.stores.users.findByEmail(email))?.user;
        if (!user) throw new Error('The user is gone.');
        await resetPassword(harness.direct.ports, operator, user, password);
        expect((await enterCode(cookie, app.code())).status).to.equal(401);
        const again = await halfOpen(email);
        await database().write('users').where({ id }).update({ disabled_at: clock.now() });
        expect((await enterCode(again, app.code())).status).to.equal(401);
      });

      it('is recorded in the activity, whether or not the code was right', async () => {
        const { email, app, id } = await newUser();
        const { read } = database();
        await halfOpen(email);
        const before = await read('audit_events').where({ subject_id: id, action: 'session.started' }).pluck('id');
        const other = await startAnother();
        expect((await enterCode(await halfOpen(email, { at: other }), '000000', { at: other })).status).to.equal(401);
        await signInWith(email, app.code());
        // A core records refused codes in steps, and the rest when it closes.
        for (const each of others.splice(0)) await each.close();
        expect(await actionsOf(id)).to.include('second-factor.refused');
        expect(await read('audit_events').where({ subject_id: id, action: 'session.started' }).pluck('id')).to.have.length(
          before.length + 1,
        );
      });
    });

    describe('with a code', () => {
      it('works once', async () => {
        const { email, app } = await newUser();
        const code = app.code();
        expect((await signInWith(email, code)).status).to.equal(201);
        expect((await signInWith(email, code)).status).to.equal(401);
      });

      it('works only once on two cores, even at the same time', async () => {
        const { email, app } = await newUser();
        const other = await startAnother();
        const waiting = await Promise.all([core, other, core, other].map(async (at) => ({ at, cookie: await halfOpen(email, { at }) })));
        const answers = await Promise.all(waiting.map(({ at, cookie }) => enterCode(cookie, app.code(), { at })));
        expect(answers.map(({ status }) => status).toSorted()).to.deep.equal([201, 401, 401, 401]);
      });

      it('works in the step before and after its own, and not two steps later', async () => {
        const { email, app } = await newUser();
        expect((await signInWith(email, app.code(-2))).status).to.equal(401);
        expect((await signInWith(email, app.code(-1))).status).to.equal(201);
        expect((await signInWith(email, app.code(2))).status).to.equal(401);
        expect((await signInWith(email, app.code(1))).status).to.equal(201);
        expect((await signInWith(email, app.code(0))).status, 'older than the last one').to.equal(401);
      });

      it('was used up by the confirmation', async () => {
        const { cookie, email } = await newUserWithout();
        const begun = await inSession('POST', '/console/second-factor', cookie, { currentPassword: password });
        const code = authenticator(textAt(begun, 'secret'), clock.now).code();
        await inSession('POST', '/console/second-factor/confirmation', cookie, { code });
        expect((await signInWith(email, code)).status).to.equal(401);
      });

      it('works again after the clock was far ahead', async () => {
        const { email, app } = await newUser();
        clock.advance({ days: 30 });
        expect((await signInWith(email, app.code())).status).to.equal(201);
        clock.advance({ days: -30 });
        expect((await signInWith(email, app.code())).status).to.equal(201);
      });

      it('may have spaces', async () => {
        const { email, app } = await newUser();
        expect((await signInWith(email, ` ${app.code().slice(0, 3)} ${app.code().slice(3)} `)).status).to.equal(201);
      });
    });

    describe('with a recovery code', () => {
      it('works once, in any spelling, and is recorded', async () => {
        const { email, recoveryCodes, id } = await newUser();
        const [first = '', second = ''] = recoveryCodes;
        expect((await signInWith(email, first)).status).to.equal(201);
        expect((await signInWith(email, first)).status).to.equal(401);
        const misread = second.toUpperCase().replace('-', ' ').replaceAll('0', 'O').replaceAll('1', 'l');
        expect((await signInWith(email, misread)).status).to.equal(201);
        expect((await actionsOf(id)).filter((action) => action === 'recovery-code.used')).to.have.length(2);
      });

      it('works only once on two cores at the same time', async () => {
        const { email, recoveryCodes } = await newUser();
        const other = await startAnother();
        const waiting = await Promise.all([core, other, core, other].map(async (at) => ({ at, cookie: await halfOpen(email, { at }) })));
        const answers = await Promise.all(waiting.map(({ at, cookie }) => enterCode(cookie, recoveryCodes[0] ?? '', { at })));
        expect(answers.map(({ status }) => status).toSorted()).to.deep.equal([201, 401, 401, 401]);
      });

      it('works for its own user only', async () => {
        const [one, other] = [await newUser(), await newUser()];
        expect((await signInWith(one.email, other.recoveryCodes[0] ?? '')).status).to.equal(401);
        expect((await signInWith(one.email, other.app.code())).status).to.equal(401);
      });
    });

    describe('being guessed', () => {
      it('is throttled after ten attempts, even with the correct password each time', async () => {
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
        expect((await signInWith(email, app.code())).status, 'from elsewhere').to.equal(201);
      });

      it('is throttled with many codes in one half-open session', async () => {
        const { email } = await newUser();
        const from = elsewhere();
        const cookie = await halfOpen(email, { from });
        const answers: Answer[] = [];
        for (let n = 0; n < 11; n++) answers.push(await enterCode(cookie, '000000', { from }));
        expect(answers.map(({ status }) => status)).to.deep.equal([...Array.from({ length: 9 }, () => 401), 429, 429]);
      });

      it('starts from zero after a valid code, and gives back what it counted', async () => {
        const { email, app } = await newUser();
        const from = '203.0.113.77';
        await database().write('sign_in_attempts').delete();
        await enterCode(await halfOpen(email, { from }), '000000', { from });
        expect((await enterCode(await halfOpen(email, { from }), app.code(), { from })).status).to.equal(201);
        const left = await database().read('sign_in_attempts').orderBy('key').select('key', 'points');
        expect(left.map(({ key, points }) => [key.split(':')[0], points])).to.deep.equal([
          ['account', 2],
          ['address', 2],
          ['network24', 2],
        ]);
        const cookie = await halfOpen(email, { from });
        for (let n = 0; n < 9; n++) expect((await enterCode(cookie, '000000', { from })).status).to.equal(401);
        expect((await enterCode(cookie, '000000', { from })).status).to.equal(429);
      });

      it('is throttled in a session that someone has taken over', async () => {
        const { cookie } = await newUser();
        const answers: number[] = [];
        for (let n = 0; n < 11; n++) answers.push((await inSession('DELETE', '/console/second-factor', cookie, { code: '000000' })).status);
        expect(answers).to.deep.equal([...Array.from({ length: 10 }, () => 401), 429]);
      });
    });

    describe('in a signed-in session', () => {
      it('is asked for before the password changes', async () => {
        const { cookie, app, email } = await newUser();
        const change = (body: object) =>
          inSession('POST', '/console/password', cookie, { currentPassword: password, newPassword: 'another long one', ...body });
        const without = await change({});
        expect([without.status, readCode(without)]).to.deep.equal([403, 'forbidden']);
        expect((await change({ code: '000000' })).status).to.equal(401);
        expect(await statusOf(cookie), 'the session continues').to.equal(200);
        expect((await change({ code: app.code() })).status).to.equal(204);
        expect((await tryPassword(email, 'another long one')).status).to.equal(202);
      });

      it('isn’t asked for again to replace a one-time password', async () => {
        const { email, app } = await newUser();
        const user = (await harness.direct.ports.stores.users.findByEmail(email))?.user;
        if (!user) throw new Error('The user is gone.');
        const { password: once } = await resetPassword(harness.direct.ports, operator, user, null);
        const answer = await enterCode(readCookies(await tryPassword(email, once ?? '')), app.code());
        expect(answer.json).to.deep.include({ passwordChangeDue: true });
        expect((await inSession('POST', '/console/password', readCookies(answer), { newPassword: password })).status).to.equal(204);
      });

      it('is turned off with a code, and then isn’t asked for', async () => {
        const { cookie, email, recoveryCodes, id } = await newUser();
        expect((await inSession('DELETE', '/console/second-factor', cookie, { code: recoveryCodes[3] })).status).to.equal(204);
        expect((await tryPassword(email)).status).to.equal(201);
        expect((await inSession('DELETE', '/console/second-factor', cookie, { code: '000000' })).status).to.equal(404);
        expect(await actionsOf(id)).to.include('second-factor.removed');
        expect(await database().read('recovery_codes').where({ user_id: id })).to.deep.equal([]);
      });
    });

    describe('of someone else', () => {
      it('is reset by an administrator, which ends their sessions', async () => {
        const { cookie, id, email } = await newUser();
        const admin = await signIn(core.url, 'stan@example.com');
        const reset = (of: string) => inSession('DELETE', `/console/users/${of}/second-factor`, admin);
        expect((await reset(id)).status).to.equal(204);
        expect(await statusOf(cookie)).to.equal(401);
        expect((await tryPassword(email)).status).to.equal(201);
        expect(await actionsOf(id)).to.include('second-factor.reset');
        expect((await reset(id)).status).to.equal(409);
        expect((await reset('nobody')).status).to.equal(404);
      });

      it('is reset only with a code if the administrator has a second factor, like a password', async () => {
        const admin = await newUser();
        const user = await newUser();
        for (const [method, path, status] of [
          ['DELETE', `/console/users/${user.id}/second-factor`, 204],
          ['POST', `/console/users/${user.id}/password`, 200],
        ] as const) {
          expect((await inSession(method, path, admin.cookie)).status).to.equal(403);
          expect((await inSession(method, path, admin.cookie, { code: '000000' })).status).to.equal(401);
          expect((await inSession(method, path, admin.cookie, { code: admin.app.code() })).status).to.equal(status);
          clock.advance({ seconds: 30 });
        }
        expect((await inSession('DELETE', `/console/users/${admin.id}/second-factor`, admin.cookie, {})).status).to.equal(409);
      });

      it("can't be reset from another scope", async () => {
        const { id } = await newUser();
        const partner = await signIn(core.url, 'pat@example.com');
        expect((await inSession('DELETE', `/console/users/${id}/second-factor`, partner)).status).to.equal(404);
        const account = await signIn(core.url, 'ada@example.com');
        expect((await inSession('DELETE', `/console/users/${id}/second-factor`, account)).status).to.equal(403);
      });

      it('is shown in the list of users', async () => {
        const [{ id }, without] = [await newUser(), await newUserWithout()];
        const { json } = await inSession('GET', '/console/users', without.cookie);
        const { users: listed } = json as { users: { id: string; secondFactor: boolean }[] };
        const shown = (of: string) => listed.find((user) => user.id === of)?.secondFactor;
        expect([shown(id), shown(without.id)]).to.deep.equal([true, false]);
      });
    });

    describe('that is required', () => {
      it('has to be set up before anything else, but after a one-time password was replaced', async () => {
        const strict = await startAnother({ SECOND_FACTOR: 'required' });
        const input = { email: `due-${kind}@example.com`, name: 'Due', userType: 'staff', accountId: null, partnerId: null } as const;
        const { password: once } = await createUser(harness.direct.ports, operator, input, null);
        const signedIn = await tryPassword(input.email, once ?? '', { at: strict });
        expect(signedIn.json).to.deep.include({ passwordChangeDue: true, secondFactorDue: true, secondFactor: false });
        const cookie = readCookies(signedIn);
        const tryAll = async () => {
          const open: string[] = [];
          for (const [name, { by, method, path }] of Object.entries(consoleRoutes)) {
            if (by !== 'session' || name === 'signOut') continue;
            const { status } = await ask(method, strict.url + path.replace(/:\w+/g, 'x'), {
              cookie,
              ...(method === 'GET' ? {} : { body: {} }),
            });
            if (status !== 403) open.push(name);
          }
          return open;
        };
        expect(await tryAll()).to.deep.equal(['showSession', 'changePassword']);
        await ask('POST', `${strict.url}/console/password`, { cookie, body: { newPassword: password } });
        expect(await tryAll()).to.deep.equal(['showSession', 'enrollSecondFactor', 'confirmSecondFactor']);
        await enroll(strict.url, cookie, clock);
        expect((await ask('GET', `${strict.url}/console/session`, { cookie })).json).not.to.have.property('secondFactorDue');
        expect((await ask('GET', `${strict.url}/console/users`, { cookie })).status).to.equal(200);
      });
    });

    describe('in a stolen database', () => {
      it('can’t be used: neither the secret nor the codes are readable', async () => {
        const { id, app, recoveryCodes } = await newUser();
        const rows = JSON.stringify([
          await database().read('second_factors').where({ user_id: id }),
          await database().read('recovery_codes').where({ user_id: id }),
        ]);
        for (const secret of [app.secret, ...recoveryCodes, ...recoveryCodes.map((code) => code.replace('-', ''))])
          expect(rows).not.to.include(secret);
        expect(await database().read('recovery_codes').where({ user_id: id })).to.have.length(10);
      });

      it("doesn't open with another session secret, and a secret doesn't work in another user's row", async () => {
        const [one, other] = [await newUser(), await newUser()];
        const thief = await startAnother({ SESSION_SECRETS: otherSecret });
        expect((await enterCode(await halfOpen(one.email, { at: thief }), one.app.code(), { at: thief })).status).to.equal(500);
        expect(JSON.stringify(thief.log)).to.include('SESSION_SECRETS no longer contains');
        const factors = () => database().write('second_factors');
        const planted = await factors().where({ user_id: other.id }).first('secret');
        await factors()
          .where({ user_id: one.id })
          .update({ secret: planted?.secret ?? '' });
        expect((await signInWith(one.email, other.app.code())).status).to.equal(500);
        await factors().whereIn('user_id', [one.id, other.id]).delete();
      });

      it('is encrypted again with a new session secret, and then no longer needs the old one', async () => {
        const { email, app, recoveryCodes } = await newUser();
        const { ports } = harness.direct;
        const resealed = await resealSecrets({ ...ports, secretBox: createSecretBox([otherSecret, testSecret], testRandomness) });
        expect(resealed.unreadable).to.equal(0);
        expect(resealed.resealed).to.be.greaterThan(0);
        const rotated = await startAnother({ SESSION_SECRETS: otherSecret });
        const enter = async (code: string) => (await enterCode(await halfOpen(email, { at: rotated }), code, { at: rotated })).status;
        expect([await enter(app.code()), await enter(recoveryCodes[0] ?? '')]).to.deep.equal([201, 201]);
        await resealSecrets({ ...ports, secretBox: createSecretBox([testSecret, otherSecret], testRandomness) });
      });
    });

    it('never appears in a log, a metric or the activity', async () => {
      const { app, recoveryCodes, email, cookie } = await newUser();
      const code = app.code();
      await signInWith(email, code);
      await signInWith(email, recoveryCodes[0] ?? '');
      await signInWith(email, code);
      await inSession('DELETE', '/console/second-factor', cookie, { code: recoveryCodes[1] });
      const metrics = await (await fetch(`${core.managementUrl}/metrics`)).text();
      const written = [JSON.stringify(core.log), metrics, JSON.stringify(await database().read('audit_events'))].join('\n');
      for (const secret of [app.secret, `"${code}"`, ...recoveryCodes]) expect(written).not.to.include(secret);
      expect(metrics).to.match(/callkey_second_factor_codes_total\{result="accepted"\} [1-9]/);
      expect(metrics).to.match(/callkey_second_factor_codes_total\{result="refused"\} [1-9]/);
    });
  });
});
