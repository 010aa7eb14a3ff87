import { expect } from 'chai';
import { operator } from '../../../core/domain/audit/audit.ts';
import { createUser } from '../../../core/domain/directory/users.ts';
import { resealSecrets } from '../../../core/domain/sign-in/second-factor.ts';
import { createSecretBox } from '../../../core/server/sealed-secrets.ts';
import { testRandomness } from '../../support/clock.ts';
import { testSecret } from '../../support/commands.ts';
import { ask, readCookies, textAt } from '../../support/http.ts';
import { secondFactorSuite, tryRoutes } from '../../support/session-suite.ts';
import { authenticator, enroll, password, recoveryCodesIn } from '../../support/tenants.ts';

const otherSecret = 'another secret for tests of at least 32 characters';

describe('a second factor', () => {
  const at = secondFactorSuite();
  const { tables, startAnother, closeOthers, newUser, newUserWithout, listActions } = at;
  const { tryPassword, enterCode, inSession, readStatus, halfOpen, signInWith } = at;

  describe('being set up', () => {
    it('requires the password and a code from the app, and then shows ten recovery codes once', async () => {
      const { cookie, email, id } = await newUserWithout();
      const begin = (currentPassword: string) => inSession('POST', '/console/second-factor', cookie, { currentPassword });
      expect((await begin('wrong')).status).to.equal(422);
      const begun = await begin(password);
      const secret = textAt(begun, 'secret');
      expect(begun.status).to.equal(201);
      expect(secret).to.match(/^[A-Z2-7]{32}$/);
      const issuer = encodeURIComponent(`Callkey ${new URL(at.core.url).host.replace(':', ' ')}`);
      expect(begun.json['uri']).to.equal(`otpauth://totp/${issuer}:${encodeURIComponent(email)}?secret=${secret}&issuer=${issuer}`);
      const confirm = (code: string) => inSession('POST', '/console/second-factor/confirmation', cookie, { code });
      expect((await confirm('000000')).status).to.equal(401);
      expect((await tryPassword(email)).status, 'not required yet').to.equal(201);
      const confirmed = await confirm(authenticator(secret, at.clock.now).code());
      expect(confirmed.status).to.equal(200);
      expect(new Set(recoveryCodesIn(confirmed.json)).size).to.equal(10);
      for (const code of recoveryCodesIn(confirmed.json)) expect(code).to.match(/^[0-9a-hjkmnp-tv-z]{5}-[0-9a-hjkmnp-tv-z]{5}$/);
      expect((await inSession('GET', '/console/session', cookie)).json['secondFactor']).to.equal(true);
      expect(await listActions(id)).to.include('second-factor.enabled');
    });

    it('can start again with another secret until it’s confirmed, and afterwards returns a 409', async () => {
      const { cookie } = await newUserWithout();
      const begin = () => inSession('POST', '/console/second-factor', cookie, { currentPassword: password });
      const confirm = (code: string) => inSession('POST', '/console/second-factor/confirmation', cookie, { code });
      expect((await confirm('123456')).status, 'before the setup starts').to.equal(409);
      const [first, second] = [await begin(), await begin()].map((answer) => authenticator(textAt(answer, 'secret'), at.clock.now));
      expect((await confirm(first?.code() ?? '')).status).to.equal(401);
      expect((await confirm(second?.code() ?? '')).status).to.equal(200);
      expect({ begun: (await begin()).status, confirmed: (await confirm(second?.code(1) ?? '')).status }).to.deep.equal({
        begun: 409,
        confirmed: 409,
      });
    });

    it('is blocked for only 15 minutes after every ten wrong codes, because there are no recovery codes yet', async () => {
      const { cookie } = await newUserWithout();
      const begun = await inSession('POST', '/console/second-factor', cookie, { currentPassword: password });
      const confirm = (code: string) => inSession('POST', '/console/second-factor/confirmation', cookie, { code });
      for (let round = 0; round < 3; round++) {
        for (let n = 0; n < 10; n++) expect((await confirm('000000')).status).to.equal(401);
        expect((await confirm('000000')).json['detail']).to.equal('Too many attempts. Try again in 15 minutes.');
        at.clock.advance({ minutes: 15 });
      }
      expect((await confirm(authenticator(textAt(begun, 'secret'), at.clock.now).code())).status).to.equal(200);
    });

    it("can't be confirmed, replaced or removed by someone who only knows the password", async () => {
      const { email } = await newUser();
      const cookie = await halfOpen(email);
      expect((await inSession('POST', '/console/second-factor', cookie, { currentPassword: password })).status).to.equal(401);
      expect((await inSession('POST', '/console/second-factor/confirmation', cookie, { code: '123456' })).status).to.equal(401);
      expect((await inSession('DELETE', '/console/second-factor', cookie, { code: '123456' })).status).to.equal(401);
    });

    it('must, if it is required, be set up before anything else, but after replacing a one-time password', async () => {
      const strict = await startAnother({ SECOND_FACTOR: 'required' });
      const input = { email: 'due@example.com', name: 'Due', userType: 'staff', accountId: null, partnerId: null } as const;
      const { password: once } = await createUser(at.direct.ports, operator, input, null);
      const signedIn = await tryPassword(input.email, once ?? '', { at: strict });
      expect(signedIn.json).to.deep.include({ passwordChangeDue: true, secondFactorDue: true, secondFactor: false });
      const cookie = readCookies(signedIn);
      const tryAll = async () => (await tryRoutes(strict.url, cookie)).filter(({ status }) => status !== 403).map(({ route }) => route);
      expect(await tryAll()).to.deep.equal(['showSession', 'changePassword']);
      await ask('POST', `${strict.url}/console/password`, { cookie, body: { newPassword: password } });
      expect(await tryAll()).to.deep.equal(['showSession', 'enrollSecondFactor', 'confirmSecondFactor']);
      await enroll(strict.url, cookie, at.clock);
      expect((await ask('GET', `${strict.url}/console/session`, { cookie })).json).not.to.have.property('secondFactorDue');
      expect((await ask('GET', `${strict.url}/console/users`, { cookie })).status).to.equal(200);
    });
  });

  describe('at sign-in', () => {
    it('is required after the password, and starts a session with a new ID', async () => {
      const { email, app } = await newUser();
      const answer = await tryPassword(email);
      expect([answer.status, answer.json]).to.deep.equal([202, { secondFactor: true }]);
      const waiting = readCookies(answer);
      const entered = await enterCode(waiting, app.code());
      expect(entered.status).to.equal(201);
      expect(entered.json).to.deep.include({ secondFactor: true });
      const opened = readCookies(entered);
      expect([readCookies(answer), opened].map((cookies) => cookies.includes('callkey_device_'))).to.deep.equal([false, true]);
      expect((await inSession('GET', '/console/session', opened)).text).to.equal(entered.text);
      expect(opened.split(';')[0]).not.to.equal(waiting.split(';')[0]);
      expect(await readStatus(waiting), 'the half-open session').to.equal(401);
    });

    it('must be entered before anything else: until then, every route returns the common 401', async () => {
      const { email, app } = await newUser();
      const cookie = await halfOpen(email);
      const common = (await ask('GET', `${at.core.url}/console/session`)).text;
      const answers = await tryRoutes(at.core.url, cookie, null);
      expect(answers.filter(({ status, text }) => status !== 401 || text !== common)).to.deep.equal([]);
      expect((await enterCode(cookie, app.code())).status).to.equal(201);
    });

    it('must be entered within ten minutes', async () => {
      const { email, app } = await newUser();
      const [inTime, late] = [await halfOpen(email), await halfOpen(email)];
      at.clock.advance({ minutes: 10 });
      expect((await enterCode(inTime, app.code())).status).to.equal(201);
      at.clock.advance({ milliseconds: 1 });
      expect((await enterCode(late, app.code(1))).status).to.equal(401);
    });

    it('is recorded in the activity, whether or not the code was valid', async () => {
      const { email, app, id } = await newUser();
      const { read } = tables();
      await halfOpen(email);
      const before = await read('audit_events').where({ subject_id: id, action: 'session.started' }).pluck('id');
      const other = await startAnother();
      expect((await enterCode(await halfOpen(email, { at: other }), '000000', { at: other })).status).to.equal(401);
      await signInWith(email, app.code());
      // A core records refused codes in batches, and the rest when it closes.
      await closeOthers();
      expect(await listActions(id)).to.include('second-factor.refused');
      expect(await read('audit_events').where({ subject_id: id, action: 'session.started' }).pluck('id')).to.have.length(before.length + 1);
    });
  });

  describe('in the database', () => {
    it('can’t be read by someone who steals the database', async () => {
      const { id, app, recoveryCodes } = await newUser();
      const rows = JSON.stringify([
        await tables().read('second_factors').where({ user_id: id }),
        await tables().read('recovery_codes').where({ user_id: id }),
      ]);
      for (const secret of [app.secret, ...recoveryCodes, ...recoveryCodes.map((code) => code.replace('-', ''))])
        expect(rows).not.to.include(secret);
      expect(await tables().read('recovery_codes').where({ user_id: id })).to.have.length(10);
    });

    it("can't be decrypted with another session secret, or in another user's row", async () => {
      const [one, other] = [await newUser(), await newUser()];
      const thief = await startAnother({ SESSION_SECRETS: otherSecret });
      const refused = await enterCode(await halfOpen(one.email, { at: thief }), one.app.code(), { at: thief });
      expect([refused.status, refused.json['detail']]).to.deep.equal([
        503,
        "This server can't read your second factor. Ask an administrator to reset it, or the operator to check the log.",
      ]);
      expect(JSON.stringify(thief.log)).to.include('SESSION_SECRETS no longer contains');
      const factors = () => tables().write('second_factors');
      const planted = await factors().where({ user_id: other.id }).first('secret');
      await factors()
        .where({ user_id: one.id })
        .update({ secret: planted?.secret ?? '' });
      expect((await signInWith(one.email, other.app.code())).status).to.equal(503);
      await factors().whereIn('user_id', [one.id, other.id]).delete();
    });

    it('is re-encrypted with a new session secret, and then no longer needs the old one', async () => {
      const { email, app, recoveryCodes } = await newUser();
      const { ports } = at.direct;
      const resealed = await resealSecrets({ ...ports, secretBox: createSecretBox([otherSecret, testSecret], testRandomness) });
      expect(resealed.unreadable).to.equal(0);
      expect(resealed.resealed).to.be.greaterThan(0);
      const rotated = await startAnother({ SESSION_SECRETS: otherSecret });
      const enter = async (code: string) => (await enterCode(await halfOpen(email, { at: rotated }), code, { at: rotated })).status;
      expect({ byApp: await enter(app.code()), byRecovery: await enter(recoveryCodes[0] ?? '') }).to.deep.equal({
        byApp: 201,
        byRecovery: 201,
      });
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
    const metrics = await (await fetch(`${at.core.managementUrl}/metrics`)).text();
    const written = [JSON.stringify(at.core.log), metrics, JSON.stringify(await tables().read('audit_events'))].join('\n');
    for (const secret of [app.secret, `"${code}"`, ...recoveryCodes]) expect(written).not.to.include(secret);
    expect(metrics).to.match(/callkey_second_factor_codes_total\{result="accepted"\} [1-9]/);
    expect(metrics).to.match(/callkey_second_factor_codes_total\{result="refused"\} [1-9]/);
  });
});
