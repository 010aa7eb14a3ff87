import { expect } from 'chai';
import { createdUserSchema, deletionSchema, resetPasswordSchema, usersSchema } from '#contract/console/users.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask, readCode, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn, password as usualPassword } from '../support/tenants.ts';

describe('managing users in the console', () => {
  onEachDatabase((kind) => {
    const its = openOnce(() => openCore({ kind }));
    afterEach(async () => {
      const { write } = its.direct.storage.database;
      for (const table of ['sessions', 'api_keys'] as const) await write(table).delete();
      const known = Object.values(its.tenants.users).map(({ id }) => id);
      await write('users').whereNotIn('id', known).delete();
    });

    /** Creates another user of the account. */
    const newUser = async () => {
      const input = {
        email: 'new@example.com',
        name: 'New',
        userType: 'account',
        accountId: its.tenants.account.id,
        partnerId: null,
      } as const;
      return (await createUser(its.direct.ports, operator, input, usualPassword)).user;
    };
    const as = (name: string) => signIn(its.core.url, `${name}@example.com`);
    const staffIn = async (tenancy: object) => {
      const cookie = await as('stan');
      await ask('PUT', `${its.core.url}/console/session/tenancy`, { cookie, body: tenancy });
      return cookie;
    };

    describe('users', () => {
      const people = (cookie: string) => ask('GET', `${its.core.url}/console/users`, { cookie });
      const names = async (cookie: string) => {
        const { users } = usersSchema.strict().parse((await people(cookie)).json);
        return users.map(({ email }) => email.replace('@example.com', '')).sort();
      };
      const add = (cookie: string, body: object): Promise<Answer> =>
        ask('POST', `${its.core.url}/console/users`, { cookie, body: { email: 'new@example.com', name: 'New', ...body } });

      it("are listed within the viewer's scope", async () => {
        expect(await names(await as('pat'))).to.deep.equal(['ada', 'pat', 'sue', 'tia', 'tom']);
        expect(await names(await as('tia'))).to.deep.equal(['ada', 'tia', 'tom']);
        expect(await names(await staffIn({ kind: 'account', id: its.tenants.otherAccount.id }))).to.deep.equal(['oda']);
        expect(await names(await staffIn({ kind: 'partner', id: its.tenants.otherPartner.id }))).to.deep.equal(['oda', 'otto']);
        expect(await names(await as('stan'))).to.deep.equal(['stan']);
        const refused = await people(await as('ada'));
        expect([refused.status, readCode(refused)]).to.deep.equal([403, 'forbidden']);
      });

      it("can be created in the creator's scope, with a one-time password", async () => {
        const { account, siblingAccount, otherAccount } = its.tenants;
        // The domain's tests have all combinations.
        const attempts = [
          ['pat', { userType: 'account', accountId: account.id }, 201],
          ['pat', { userType: 'account', accountId: otherAccount.id }, 422],
          ['pat', { userType: 'partner', accountId: siblingAccount.id }, 201],
          ['tia', { userType: 'partner' }, 201],
          ['stan', { userType: 'staff' }, 201],
          ['ada', { userType: 'account' }, 403],
        ] as const;
        for (const [n, [who, input, status]] of attempts.entries()) {
          const answer = await add(await as(who), { ...input, email: `new-${n}@example.com` });
          expect(answer.status, `${who}: ${JSON.stringify(input)}: ${answer.text}`).to.equal(status);
          if (status !== 201) continue;
          const { user, password } = createdUserSchema.strict().parse(answer.json);
          const cookie = await signIn(its.core.url, user.email, password ?? '');
          expect((await ask('GET', `${its.core.url}/console/session`, { cookie })).json).to.include({ passwordChangeDue: true });
          // A new user's scope is never wider than the creator's: a partner user created by a limited user is limited as well.
          if (who === 'tia') expect(user.account?.id).to.equal(account.id);
        }
      });

      it('are deleted with their keys and sessions after a preview, and on request their queued calls are cancelled', async () => {
        const { id } = await newUser();
        const cookie = await as('new');
        const { keyValue } = await createKey(its.core.url, cookie, 'CRM');
        const placed = await placeCall(its.core.url, its.tenants.campaign.id, keyValue);
        const tia = await as('tia');
        const url = `${its.core.url}/console/users/${id}`;
        const preview = deletionSchema.strict().parse((await ask('GET', `${url}/deletion`, { cookie: tia })).json);
        expect(preview.apiKeys.map(({ name, queuedCalls }) => [name, queuedCalls])).to.deep.equal([['CRM', 1]]);
        expect({ sessions: preview.sessions, apiKeys: preview.user.apiKeys }).to.deep.equal({ sessions: 1, apiKeys: 1 });
        expect((await ask('DELETE', `${url}?cancelQueuedCalls=true`, { cookie: tia })).status).to.equal(204);
        expect((await placeCall(its.core.url, its.tenants.campaign.id, keyValue)).status).to.equal(401);
        expect((await ask('GET', `${its.core.url}/console/session`, { cookie })).status).to.equal(401);
        const state: string[] = await its.direct.storage.database
          .read('calls')
          .where({ contact_id: textAt(placed, 'contactId') })
          .pluck('state');
        expect(state).to.deep.equal(['cancelled']);
        expect((await ask('DELETE', url, { cookie: tia })).status).to.equal(404);
      });

      it("can't delete or change themselves, even if they're staff in an account", async () => {
        const cookie = await staffIn({ kind: 'account', id: its.tenants.account.id });
        const own = `${its.core.url}/console/users/${its.tenants.users.staff.id}`;
        for (const [method, path, body] of [
          ['DELETE', '', undefined],
          ['PATCH', '', { disabled: true }],
          ['POST', '/password', undefined],
          ['DELETE', '/link', undefined],
          ['DELETE', '/second-factor', undefined],
        ] as const) {
          const { status } = await ask(method, own + path, { cookie, ...(body ? { body } : {}) });
          expect([method, path, status]).to.deep.equal([method, path, 409]);
        }
        expect((await ask('GET', `${own}/deletion`, { cookie })).status).to.equal(404);
      });
    });

    describe("resetting someone else's password", () => {
      const reset = (cookie: string, user: { id: string }) => ask('POST', `${its.core.url}/console/users/${user.id}/password`, { cookie });

      it("sets a new one-time password, which no event contains, disables the old one, ends all sessions, and keeps the user's keys", async () => {
        const user = await newUser();
        const cookie = await as('new');
        const { keyValue } = await createKey(its.core.url, cookie);
        const answer = await reset(await as('tia'), user);
        expect(answer.status).to.equal(200);
        const { password } = resetPasswordSchema.strict().parse(answer.json);
        expect((await ask('GET', `${its.core.url}/console/session`, { cookie })).status).to.equal(401);
        const tryPassword = (attempt: string) =>
          ask('POST', `${its.core.url}/console/session`, { body: { email: user.email, password: attempt } });
        expect((await tryPassword(usualPassword)).status).to.equal(401);
        const session = await tryPassword(password);
        expect([session.status, session.json['passwordChangeDue']]).to.deep.equal([201, true]);
        expect((await placeCall(its.core.url, its.tenants.campaign.id, keyValue)).status).to.equal(202);
        const events: object[] = await its.direct.storage.database
          .read('audit_events')
          .where({ action: 'password.reset', subject_id: user.id });
        expect(events).to.have.length(1);
        expect(events[0]).to.include({ actor_id: its.tenants.users.tied.id, address: '127.0.0.1' });
        expect(JSON.stringify(events)).not.to.contain(password);
      });

      it('is limited, for staff, to users of the selected tenancy, or to other staff if no tenancy is selected', async () => {
        const inPartner = await staffIn({ kind: 'partner', id: its.tenants.partner.id });
        expect((await reset(inPartner, await newUser())).status).to.equal(200);
        expect((await reset(inPartner, its.tenants.users.otherPartner)).status).to.equal(404);
        expect((await reset(await as('stan'), its.tenants.users.other)).status).to.equal(404);
      });
    });
  });
});
