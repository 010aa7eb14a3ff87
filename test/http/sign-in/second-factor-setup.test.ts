import { expect } from 'chai';
import { operator } from '../../../core/domain/audit/audit.ts';
import { createUser } from '../../../core/domain/directory/users.ts';
import { ask, readCookies, textAt } from '../../support/http.ts';
import { secondFactorSuite, tryRoutes } from '../../support/session-suite.ts';
import { authenticator, enroll, password, recoveryCodesIn } from '../../support/tenants.ts';

describe('a second factor', () => {
  const at = secondFactorSuite();
  const { startAnother, newUser, newUserWithout, listActions, tryPassword, inSession, halfOpen } = at;

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
  });

  describe('that is required', () => {
    it('must be set up before anything else, but after replacing a one-time password', async () => {
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
});
