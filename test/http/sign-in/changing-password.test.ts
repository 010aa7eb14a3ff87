import { expect } from 'chai';
import { toDigest } from '../../../core/domain/api-keys.ts';
import { operator } from '../../../core/domain/audit/audit.ts';
import { changePassword, createUser, resetPassword } from '../../../core/domain/directory/users.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { ask } from '../../support/http.ts';
import { sessionSuite, tryRoutes } from '../../support/session-suite.ts';
import { password, signIn } from '../../support/tenants.ts';

describe('changing the password', () => {
  onEachDatabase((kind) => {
    const at = sessionSuite(kind);
    const { session, tryPassword } = at;

    const change = (cookie: string, currentPassword: string, newPassword: string) =>
      ask('POST', `${at.core.url}/console/password`, { cookie, body: { currentPassword, newPassword } });

    const begin = async (email: string) => {
      const input = { email, name: 'Once', userType: 'staff', accountId: null, partnerId: null } as const;
      const { user, password: once } = await createUser(at.direct.ports, operator, input, null);
      return { user, once: once ?? '', cookie: await signIn(at.core.url, email, once ?? '') };
    };

    it("ends the user's other sessions, and keeps this session", async () => {
      const { once, cookie } = await begin('pw@example.com');
      const other = await signIn(at.core.url, 'pw@example.com', once);
      expect((await change(cookie, once, 'a new and longer one')).status).to.equal(204);
      expect((await session(other)).status).to.equal(401);
      expect((await session(cookie)).json).not.to.have.property('passwordChangeDue');
      expect((await tryPassword('pw@example.com', once)).status).to.equal(401);
      expect((await tryPassword('pw@example.com', 'a new and longer one')).status).to.equal(201);
    });

    describe('after a one-time password', () => {
      const newPassword = 'a new and longer one';
      const choose = (cookie: string, body: object) => ask('POST', `${at.core.url}/console/password`, { cookie, body });

      it('is the only thing the session can do besides signing out', async () => {
        const { cookie } = await begin('first@example.com');
        const answers = await tryRoutes(at.core.url, cookie);
        const allowed = answers.filter(({ status }) => status !== 403).map(({ route, status }) => [route, status]);
        expect(Object.fromEntries(allowed)).to.deep.equal({ showSession: 200, changePassword: 422 });
        expect(answers.length).to.be.greaterThan(20);
        expect((await ask('DELETE', `${at.core.url}/console/session`, { cookie })).status).to.equal(204);
      });

      it('requires only the new password, and the session continues', async () => {
        const { once, cookie } = await begin('second@example.com');
        for (const refused of [once, 'password', 'second-to-none'])
          expect((await choose(cookie, { newPassword: refused })).status).to.equal(422);
        expect((await choose(cookie, { newPassword })).status).to.equal(204);
        expect((await ask('GET', `${at.core.url}/console/api-keys`, { cookie })).status).to.equal(200);
        expect((await session(cookie)).json).not.to.have.property('passwordChangeDue');
        expect((await tryPassword('second@example.com', newPassword)).status).to.equal(201);
        const again = await choose(cookie, { newPassword: 'another one, and longer' });
        expect([again.status, JSON.stringify(again.json['errors'])]).to.deep.equal([
          422,
          '[{"path":"currentPassword","message":"Enter your current password."}]',
        ]);
      });

      it("fails if someone else has reset the user's password in the meantime", async () => {
        const { user, cookie } = await begin('third@example.com');
        const id = toDigest(cookie.split(/[=;]/)[1] ?? '');
        const data = await at.direct.ports.stores.sessions.find(id);
        if (!data) throw new Error("The session doesn't exist.");
        // As if a request had read its session before the password is reset.
        const { password: reset } = await resetPassword(at.direct.ports, operator, user, null);
        const changing = changePassword(at.direct.ports, { who: user, address: '192.0.2.1' }, data, { newPassword });
        expect(await changing.catch(({ code }) => code)).to.equal('invalid');
        expect((await tryPassword('third@example.com', reset ?? '')).status).to.equal(201);
      });
    });

    it('succeeds in only one of two concurrent requests', async () => {
      const input = { email: 'twice@example.com', name: 'Twice', userType: 'staff', accountId: null, partnerId: null } as const;
      await createUser(at.direct.ports, operator, input, password);
      const cookies = [await signIn(at.core.url, input.email), await signIn(at.core.url, input.email)];
      const answers = await Promise.all(cookies.map((cookie, n) => change(cookie, password, `a new and longer one, ${n}`)));
      expect(answers.map(({ status }) => status).sort()).to.satisfy(
        ([won, lost]: number[]) => won === 204 && (lost === 422 || lost === 401),
      );
      const winner = answers.findIndex(({ status }) => status === 204);
      expect((await tryPassword(input.email, `a new and longer one, ${winner}`, { 'X-Forwarded-For': '198.51.100.1' })).status).to.equal(
        201,
      );
    });

    it('is refused with a wrong current password, and if the new one is the same or a common one', async () => {
      const cookie = await signIn(at.core.url, 'pat@example.com');
      for (const [current, next, path] of [
        ['wrong', 'a new and longer one', 'currentPassword'],
        [password, password, 'newPassword'],
        [password, '12345678', 'newPassword'],
      ] as const) {
        const answer = await change(cookie, current, next);
        expect([answer.status, Object(answer.json['errors'])[0]?.path, answer.text.includes(next)]).to.deep.equal([422, path, false]);
      }
    });
  });
});
