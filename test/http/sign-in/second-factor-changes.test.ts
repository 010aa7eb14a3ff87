import { expect } from 'chai';
import type { Route } from '#contract/route.ts';
import { consoleRoutes } from '#contract/routes.ts';
import { auditEvent, operator } from '../../../core/domain/audit/audit.ts';
import { resetPassword } from '../../../core/domain/directory/users.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { type Answer, ask, readCode, readCookies } from '../../support/http.ts';
import { secondFactorSuite } from '../../support/session-suite.ts';
import { password, recoveryCodesIn, signIn } from '../../support/tenants.ts';

describe('a second factor', () => {
  onEachDatabase((kind) => {
    const at = secondFactorSuite(kind);
    const { tables, newUser, newUserWithout, listActions, tryPassword, enterCode, inSession, readStatus, signInWith } = at;

    describe('in a signed-in session', () => {
      it('is required to change the password', async () => {
        const { cookie, app, email } = await newUser();
        const change = (body: object) =>
          inSession('POST', '/console/password', cookie, { currentPassword: password, newPassword: 'another long one', ...body });
        const without = await change({});
        expect([without.status, readCode(without)]).to.deep.equal([403, 'forbidden']);
        expect((await change({ code: '000000' })).status).to.equal(401);
        expect(await readStatus(cookie), 'the session continues').to.equal(200);
        expect((await change({ code: app.code() })).status).to.equal(204);
        expect((await tryPassword(email, 'another long one')).status).to.equal(202);
      });

      it('can be replaced by a recovery code to change the password, which is recorded', async () => {
        const { cookie, id, recoveryCodes } = await newUser();
        const body = { currentPassword: password, newPassword: 'another long one', code: recoveryCodes[0] };
        expect((await inSession('POST', '/console/password', cookie, body)).status).to.equal(204);
        expect(await listActions(id)).to.include('recovery-code.used');
      });

      it('is required again to replace a one-time password', async () => {
        const { email, app, user } = await newUser();
        const { password: once } = await resetPassword(at.direct.ports, operator, user, null);
        const answer = await enterCode(readCookies(await tryPassword(email, once ?? '')), app.code());
        expect(answer.json).to.deep.include({ passwordChangeDue: true });
        const choose = (body: object) => inSession('POST', '/console/password', readCookies(answer), { newPassword: password, ...body });
        const without = await choose({});
        expect([without.status, readCode(without)]).to.deep.equal([403, 'forbidden']);
        expect((await choose({ code: app.code() })).status, 'the code that was used to sign in').to.equal(401);
        expect((await choose({ code: app.code(1) })).status).to.equal(204);
      });

      it('can be turned off with a code, and is then no longer required', async () => {
        const { cookie, email, recoveryCodes, id } = await newUser();
        expect((await inSession('DELETE', '/console/second-factor', cookie, { code: recoveryCodes[3] })).status).to.equal(204);
        expect((await tryPassword(email)).status).to.equal(201);
        expect((await inSession('DELETE', '/console/second-factor', cookie, { code: '000000' })).status).to.equal(404);
        expect(await listActions(id)).to.include('second-factor.removed');
        expect(await tables().read('recovery_codes').where({ user_id: id })).to.deep.equal([]);
      });
    });

    describe('has recovery codes that', () => {
      const renew = (cookie: string, code: string) => inSession('POST', '/console/second-factor/recovery-codes', cookie, { code });
      const left = async (cookie: string) => (await inSession('GET', '/console/second-factor', cookie)).json;

      it('can be counted, and are replaced if the user enters a valid code, with an audit event', async () => {
        const { cookie, email, id, app, recoveryCodes } = await newUser();
        const [first = '', second = '', third = ''] = recoveryCodes;
        expect((await signInWith(email, first)).status).to.equal(201);
        expect(await left(cookie)).to.deep.equal({ recoveryCodesLeft: 9 });
        const renewed = await renew(cookie, app.code());
        expect(renewed.status).to.equal(200);
        expect(await left(cookie)).to.deep.equal({ recoveryCodesLeft: 10 });
        expect((await signInWith(email, second)).status, 'an earlier recovery code').to.equal(401);
        const [own = '', other = ''] = recoveryCodesIn(renewed.json);
        expect((await signInWith(email, own)).status).to.equal(201);
        expect((await renew(cookie, third)).status).to.equal(401);
        expect((await renew(cookie, other)).status, 'with a recovery code').to.equal(200);
        expect((await listActions(id)).filter((action) => action === 'recovery-codes.renewed')).to.have.length(2);
      });

      it("can't be counted or renewed by a user without a second factor", async () => {
        const { cookie } = await newUserWithout();
        expect((await inSession('GET', '/console/second-factor', cookie)).status).to.equal(404);
        expect((await renew(cookie, '000000')).status).to.equal(404);
      });
    });

    describe('of an administrator', () => {
      const isCodeNeeded = ({ json, status }: Answer) => [status, Object(json['errors'])[0]?.path];

      it('is required for each request that hands out a way to sign in, or gives a user more access', async () => {
        const admin = await newUser();
        const { id } = await newUser();
        const { tied } = at.tenants.users;
        const linked = auditEvent(at.direct.ports, operator.actor, 'user.linked', { kind: 'user', id, name: '' }, null);
        await at.direct.ports.stores.links.create({ id }, { issuer: 'https://login.example.com', subject: id }, true, linked);
        for (const [method, path, body, status] of [
          ['POST', '/console/users', { email: 'new@example.com', name: 'New', userType: 'staff' }, 201],
          ['POST', `/console/users/${id}/password`, {}, 200],
          ['DELETE', `/console/users/${id}/link`, {}, 204],
          ['DELETE', `/console/users/${id}/second-factor`, {}, 204],
          ['PATCH', `/console/users/${id}`, { name: 'Enabled', disabled: false }, 200],
          ['PATCH', `/console/users/${tied.id}`, { accountId: null }, 200],
          ['PATCH', `/console/users/${tied.id}`, { accountId: tied.account?.id }, 200],
        ] as const) {
          const headers = path.includes(tied.id) ? { 'Callkey-Tenancy': `partner/${tied.partner?.id}` } : {};
          const send = (code: object) => ask(method, at.core.url + path, { cookie: admin.cookie, headers, body: { ...body, ...code } });
          const title = `${method} ${path} ${JSON.stringify(body)}`;
          expect(isCodeNeeded(await send({})), title).to.deep.equal([403, 'code']);
          expect(isCodeNeeded(await send({ code: '000000' })), title).to.deep.equal([403, 'code']);
          expect((await send({ code: admin.app.code() })).status, title).to.equal(status);
          expect(isCodeNeeded(await send({ code: admin.app.code() })), `${title}, with a used code`).to.deep.equal([403, 'code']);
          at.clock.advance({ minutes: 15, seconds: 1 });
        }
      });

      it('is required by every route that returns a password', () => {
        const routes = Object.values<Route>(consoleRoutes).filter(({ secret }) => secret === 'password');
        expect(routes.map(({ confirm }) => confirm?.({}))).to.deep.equal([true, true]);
      });

      it("isn't required to rename, disable or delete a user", async () => {
        const { cookie } = await newUser();
        const { id } = await newUser();
        for (const body of [{ name: 'Renamed' }, { disabled: true }])
          expect((await inSession('PATCH', `/console/users/${id}`, cookie, body)).status).to.equal(200);
        expect((await inSession('DELETE', `/console/users/${id}`, cookie)).status).to.equal(204);
      });
    });

    describe('of someone else', () => {
      it('is reset by an administrator, which ends their sessions', async () => {
        const { cookie, id, email } = await newUser();
        const admin = await signIn(at.core.url, 'stan@example.com');
        const reset = (of: string) => inSession('DELETE', `/console/users/${of}/second-factor`, admin);
        expect((await reset(id)).status).to.equal(204);
        expect(await readStatus(cookie)).to.equal(401);
        expect((await tryPassword(email)).status).to.equal(201);
        expect(await listActions(id)).to.include('second-factor.reset');
        expect((await reset(id)).status).to.equal(409);
        expect((await reset('nobody')).status).to.equal(404);
      });

      it("can't be reset from another scope", async () => {
        const { id } = await newUser();
        const partner = await signIn(at.core.url, 'pat@example.com');
        expect((await inSession('DELETE', `/console/users/${id}/second-factor`, partner)).status).to.equal(404);
        const account = await signIn(at.core.url, 'ada@example.com');
        expect((await inSession('DELETE', `/console/users/${id}/second-factor`, account)).status).to.equal(403);
      });

      it('is shown in the list of users', async () => {
        const [{ id }, without] = [await newUser(), await newUserWithout()];
        const { json } = await inSession('GET', '/console/users', without.cookie);
        const { users: listed } = json as { users: { id: string; secondFactor: boolean }[] };
        const shown = (of: string) => listed.find((user) => user.id === of)?.secondFactor;
        expect({ with: shown(id), without: shown(without.id) }).to.deep.equal({ with: true, without: false });
      });
    });
  });
});
