import { expect } from 'chai';
import { operator, userEvent } from '../../../core/domain/audit/audit.ts';
import {
  changeUser,
  createUser,
  deleteUser,
  disableUser,
  enableUser,
  resetPassword,
  resetSecondFactor,
  unlinkUser,
} from '../../../core/domain/directory/users.ts';
import { instant } from '../../../core/domain/instant.ts';
import type { User } from '../../../core/domain/model.ts';
import type { ListedUser, Ports } from '../../../core/domain/ports.ts';
import { findDeviceUser } from '../../../core/domain/sign-in/devices.ts';
import { fakeClock } from '../../support/clock.ts';
import { openCore } from '../../support/core.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { type Answer, ask, readCode, readCookies, textAt } from '../../support/http.ts';
import { gatedPasswords, readProblem } from '../../support/ports.ts';
import { openOnce } from '../../support/suites.ts';
import { type Authenticator, authenticator, enroll, password, signIn } from '../../support/tenants.ts';

const newPassword = 'a new and longer password';

describe('a proof', () => {
  onEachDatabase((kind) => {
    const { passwords, whileWaiting } = gatedPasswords();
    const clock = fakeClock();
    const harness = openOnce(() => openCore({ kind, clock, passwords, environment: { TRUSTED_PROXIES: '127.0.0.1' } }));
    let ports: Ports;
    before(async () => {
      ({ ports } = harness.direct);
    });

    let users = 0;
    async function newUser(userType: 'staff' | 'partner' | 'account' = 'staff') {
      const { account, partner } = harness.tenants;
      const place = { accountId: userType === 'account' ? account.id : null, partnerId: userType === 'partner' ? partner.id : null };
      const input = { email: `user-${++users}@example.com`, name: `User ${users}`, userType, ...place };
      return (await createUser(ports, operator, input, password)).user;
    }
    let addresses = 0;
    const from = () => ({ 'X-Forwarded-For': `198.51.100.${++addresses % 250}` });
    const tryPassword = ({ email }: User, attempt = password) =>
      ask('POST', `${harness.core.url}/console/session`, { body: { email, password: attempt }, headers: from() });
    const send = (method: string, path: string, cookie: string, body?: object) =>
      ask(method, harness.core.url + path, { cookie, headers: from(), ...(body === undefined ? {} : { body }) });
    const isOpen = async (cookie: string) => (await send('GET', '/console/session', cookie)).status === 200;
    const toDevice = (answer: Answer) => /callkey_device[^=.]*=([^;]+)/.exec(readCookies(answer))?.[1];
    const link = (user: User) => {
      const event = userEvent(ports, operator.actor, 'user.linked', user);
      return ports.stores.links.create(user, { issuer: 'https://login.example.com', subject: user.id }, true, event);
    };
    const place = { name: 'Moved', userType: 'partner', accountId: null } as const;

    describe("of a user stops counting once the way in which they sign in has changed, or what they're for", () => {
      type Own = { user: User; cookie: string; app: Authenticator | null };
      const changes: [string, { hasFactor?: boolean; isOwn?: boolean; change(own: Own): Promise<unknown> }][] = [
        ['by a changed password', { isOwn: true, change: ({ cookie }) => changePassword(cookie) }],
        ['by a second factor that was turned on', { isOwn: true, change: ({ cookie }) => enroll(harness.core.url, cookie, clock) }],
        [
          'by a second factor that was turned off',
          {
            hasFactor: true,
            isOwn: true,
            change: ({ cookie, app }) => send('DELETE', '/console/second-factor', cookie, { code: app?.code() }),
          },
        ],
        ['by a reset password', { hasFactor: true, change: ({ user }) => resetPassword(ports, operator, user, password) }],
        ['by a reset second factor', { hasFactor: true, change: ({ user }) => resetSecondFactor(ports, operator, user) }],
        ['by a link', { change: ({ user }) => link(user) }],
        ['by the end of a link', { change: ({ user }) => link(user).then(() => unlinkUser(ports, operator, user)) }],
        [
          'by disabling',
          {
            hasFactor: true,
            change: ({ user }) => disableUser(ports, operator, user).then(() => enableUser(ports, operator, user)),
          },
        ],
        ['by a move', { change: ({ user }) => changeUser(ports, operator, user, { ...place, partnerId: harness.tenants.partner.id }) }],
        [
          'by the end of all their sessions',
          {
            change: ({ user }) => ports.stores.sessions.endAll(userEvent(ports, operator.actor, 'session.revoked', user)),
          },
        ],
      ];
      const changePassword = (cookie: string) => send('POST', '/console/password', cookie, { currentPassword: password, newPassword });

      for (const [how, { hasFactor = false, isOwn = false, change }] of changes) {
        it(how, async () => {
          const user = await newUser();
          const app = hasFactor ? (await enroll(harness.core.url, await signIn(harness.core.url, user.email), clock)).app : null;
          /** Signs in, and returns the cookies that prove it. */
          const signedIn = async () => {
            const first = await tryPassword(user);
            clock.advance({ seconds: 60 });
            if (!app) return { session: readCookies(first), device: toDevice(first) };
            const second = await send('POST', '/console/session/second-factor', readCookies(first), { code: app.code() });
            return { session: readCookies(second), device: toDevice(second) };
          };
          const [own, other] = [await signedIn(), await signedIn()];
          const halfOpen = app && readCookies(await tryPassword(user));
          clock.advance({ seconds: 60 });
          expect([await isOpen(own.session), await isOpen(other.session)]).to.deep.equal([true, true]);
          expect(await findDeviceUser(ports, other.device)).to.equal(user.id);

          const late = await whileWaiting(
            () => tryPassword(user),
            () => change({ user, app, cookie: own.session }),
          );
          expect(late.status, 'a sign-in under way').to.equal(401);
          expect([await isOpen(own.session), await isOpen(other.session)]).to.deep.equal([isOwn, false]);
          expect(await findDeviceUser(ports, other.device)).to.equal(null);
          clock.advance({ seconds: 60 });
          if (halfOpen) expect((await send('POST', '/console/session/second-factor', halfOpen, { code: app.code() })).status).to.equal(401);
        });
      }

      it('unless only their name has changed', async () => {
        const user = await newUser();
        const cookie = readCookies(await tryPassword(user));
        await changeUser(ports, operator, user, { ...user, accountId: null, partnerId: null, name: 'Renamed' });
        expect(await isOpen(cookie)).to.equal(true);
      });

      it('so that a second factor that someone else began to set up is never confirmed', async () => {
        const user = await newUser();
        const [own, other] = [readCookies(await tryPassword(user)), readCookies(await tryPassword(user))];
        const begun = await send('POST', '/console/second-factor', other, { currentPassword: password });
        await changePassword(own);
        const { code } = authenticator(textAt(begun, 'secret'), clock.now);
        expect((await send('POST', '/console/second-factor/confirmation', own, { code: code() })).status).to.equal(409);
      });
    });

    describe('of a session stops counting when it ends while a request waits for a password', () => {
      const ends: [string, (user: User, cookie: string) => Promise<unknown>][] = [
        ['because its user signs out', (_, cookie) => send('DELETE', '/console/session', cookie)],
        ['because its user is disabled', (user) => disableUser(ports, operator, user)],
        ['because its user is deleted', (user) => deleteUser(ports, operator, user, false)],
        [
          'because its user is moved',
          (user) => changeUser(ports, operator, user, { ...place, partnerId: harness.tenants.otherPartner.id }),
        ],
        ['because its user has a new password', (user) => resetPassword(ports, operator, user, newPassword)],
      ];
      for (const [how, end] of ends) {
        it(how, async () => {
          const target = await newUser();
          const requests: [string, string, object][] = [
            ['POST', `/console/users/${target.id}/password`, {}],
            ['POST', '/console/users', { email: `late-${users}@example.com`, name: 'Late', userType: 'staff' }],
            ['POST', '/console/password', { currentPassword: password, newPassword }],
            ['POST', '/console/second-factor', { currentPassword: password }],
          ];
          for (const [method, path, body] of requests) {
            const user = await newUser();
            const cookie = await signIn(harness.core.url, user.email);
            const answer = await whileWaiting(
              () => send(method, path, cookie, body),
              () => end(user, cookie),
            );
            expect(answer.status, `${path}: ${answer.text}`).to.be.oneOf(path === '/console/password' ? [401, 422] : [401]);
          }
          expect((await tryPassword(target)).status, 'the password of the other user').to.equal(201);
          expect(await ports.stores.users.findByEmail(`late-${users - requests.length}@example.com`)).to.equal(null);
        });
      }

      it("unless the change is the user's own", async () => {
        const cookie = readCookies(await tryPassword(await newUser()));
        expect((await send('POST', '/console/password', cookie, { currentPassword: password, newPassword })).status).to.equal(204);
      });
    });

    it("of an administrator stops counting when the other user leaves the administrator's scope", async () => {
      const [partner, user] = [await newUser('partner'), await newUser('account')];
      const cookie = await signIn(harness.core.url, partner.email);
      const answer = await whileWaiting(
        () => send('POST', `/console/users/${user.id}/password`, cookie, {}),
        () => changeUser(ports, operator, user, { name: user.name, userType: 'staff', accountId: null, partnerId: null }),
      );
      expect([answer.status, readCode(answer)]).to.deep.equal([409, 'conflict']);
      expect((await tryPassword(user)).status).to.equal(201);
    });

    it('of an administrator deletes, disables and enables no one who was moved after they were found', async () => {
      const { id } = await newUser('partner');
      const find = () => ports.stores.users.find({ kind: 'all' }, id);
      const found = await find();
      if (!found) throw new Error("The user doesn't exist.");
      await changeUser(ports, operator, found, { ...place, partnerId: harness.tenants.otherPartner.id });
      const caller = { viewer: { ...harness.tenants.users.partner, tenancy: null }, actor: operator.actor };
      const having = (stale: ListedUser) => ({
        ...ports,
        stores: { ...ports.stores, users: { ...ports.stores.users, find: async () => stale } },
      });
      const refusal = /^conflict: Someone else changed this user/;
      expect(await readProblem(deleteUser(having(found), caller, found, false))).to.match(refusal);
      expect(await readProblem(changeUser(having(found), caller, found, { disabled: true }))).to.match(refusal);
      expect((await find())?.disabledAt).to.equal(null);
      await disableUser(ports, operator, found);
      expect(await readProblem(changeUser(having({ ...found, disabledAt: instant(1) }), caller, found, { disabled: false }))).to.match(
        refusal,
      );
      expect((await find())?.disabledAt).not.to.equal(null);
    });
  });
});
