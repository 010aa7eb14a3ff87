import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { callsSchema } from '#contract/console/calls.ts';
import { createdUserSchema, deletionSchema, resetPasswordSchema, usersSchema } from '#contract/console/users.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { eraseOldContacts } from '../../core/domain/calls/retention.ts';
import { fakeClock } from '../support/clock.ts';
import type { RunningCore } from '../support/core.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask, readCode, textAt } from '../support/http.ts';
import {
  createKey,
  type DirectAccess,
  onDemand,
  placeCall,
  signIn,
  somePhone,
  type Tenants,
  password as usualPassword,
} from '../support/tenants.ts';

describe('calls, users and activity in the console', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    let core: RunningCore;
    let close: CoreHarness['close'];
    let direct: DirectAccess;
    let tenants: Tenants;

    beforeEach(async () => {
      clock.set('2026-11-21T09:00:00.000Z');
      ({ core, direct, tenants, close } = await openCore({ kind, clock }));
    });
    afterEach(() => close());

    const as = (name: string) => signIn(core.url, `${name}@example.com`);
    const staffIn = async (tenancy: object) => {
      const cookie = await as('stan');
      await ask('PUT', `${core.url}/console/session/tenancy`, { cookie, body: tenancy });
      return cookie;
    };

    describe('calls', () => {
      const list = async (cookie: string, query = '', campaign = tenants.campaign.id) =>
        ask('GET', `${core.url}/console/campaigns/${campaign}/calls${query}`, { cookie });
      const listed = async (cookie: string, query = '') => callsSchema.strict().parse((await list(cookie, query)).json);

      it('are listed newest first, 50 per page, each exactly once even if more calls are placed while paging', async () => {
        const cookie = await as('ada');
        const { keyValue } = await createKey(core.url, cookie);
        for (let n = 0; n < 120; n++)
          await placeCall(core.url, tenants.campaign.id, keyValue, { requestId: `r${n}`, contact: { phone: somePhone() } });
        const seen: string[] = [];
        let query = '';
        for (const expected of [50, 50, 20]) {
          const { calls, nextCursor } = await listed(cookie, query);
          expect(calls).to.have.length(expected);
          seen.push(...calls.map(({ requestId }) => requestId));
          query = `?cursor=${nextCursor}`;
          await placeCall(core.url, tenants.campaign.id, keyValue);
          if (expected === 20) expect(nextCursor).to.equal(null);
        }
        expect([...seen].sort()).to.deep.equal(Array.from({ length: 120 }, (_, n) => `r${n}`).sort());
      });

      it('can be found by state, contact name, phone number and request ID', async () => {
        const cookie = await as('ada');
        const { keyValue } = await createKey(core.url, cookie);
        const place = (requestId: string, contact: object) => placeCall(core.url, tenants.campaign.id, keyValue, { requestId, contact });
        await place('one', { phone: '+493012345678', name: 'Ada Lovelace' });
        await place('two', { phone: '+493087654321', name: '100 %' });
        await place('three', { phone: '+493011112222' });
        await ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/by-request-id/two`, { key: keyValue });
        const findRequestIds = async (query: string) => (await listed(cookie, query)).calls.map(({ requestId }) => requestId);
        expect(await findRequestIds('?state=cancelled')).to.deep.equal(['two']);
        expect(await findRequestIds('?state=queued')).to.deep.equal(['three', 'one']);
        expect(await findRequestIds('?search=LOVELACE')).to.deep.equal(['one']);
        expect(await findRequestIds('?state=&search=&cursor=')).to.have.length(3);
        await place('four', { phone: '+493022223333', name: 'Österreich' });
        expect(await findRequestIds(`?search=${encodeURIComponent('Öster')}`)).to.deep.equal(['four']);
        await ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/by-request-id/four`, { key: keyValue });
        await direct.storage.database.write('calls').where({ request_id: 'four' }).delete();
        expect(await findRequestIds('?search=87654')).to.deep.equal(['two']);
        expect(await findRequestIds('?search=thre')).to.deep.equal(['three']);
        expect(await findRequestIds('?search=%25')).to.deep.equal(['two']);
        expect(await findRequestIds('?search=_')).to.deep.equal([]);
        expect(await findRequestIds('?state=queued&search=one')).to.deep.equal(['one']);
      });

      it("show the key that placed them, even if it's revoked, to viewers who can see that key", async () => {
        const ada = await as('ada');
        const key = await createKey(core.url, ada, 'CRM');
        await placeCall(core.url, tenants.campaign.id, key.keyValue);
        const owner = (isYou: boolean) => ({ id: key.id, name: 'CRM', owner: { isYou, name: 'Ada Account' } });
        expect((await listed(ada)).calls[0]?.apiKey).to.deep.equal(owner(true));
        expect((await listed(await as('tom'))).calls[0]?.apiKey).to.equal(null);
        expect((await listed(await as('pat'))).calls[0]?.apiKey).to.deep.equal(owner(false));
        await ask('DELETE', `${core.url}/console/api-keys/${key.id}`, { cookie: ada });
        expect((await listed(await as('tia'))).calls[0]?.apiKey).to.deep.equal(owner(false));
      });

      it("aren't found for a campaign outside the viewer's scope", async () => {
        for (const [who, campaign, status] of [
          ['ada', tenants.siblingCampaign.id, 404],
          ['tia', tenants.siblingCampaign.id, 404],
          ['pat', tenants.siblingCampaign.id, 200],
          ['pat', tenants.otherCampaign.id, 404],
          ['stan', tenants.campaign.id, 404],
          ['ada', 'none', 404],
        ] as const) {
          expect((await list(await as(who), '', campaign)).status, `${who} ${campaign}`).to.equal(status);
        }
        expect((await list(await staffIn({ kind: 'partner', id: tenants.partner.id }))).status).to.equal(200);
      });

      it("aren't listed if the query is invalid", async () => {
        const cookie = await as('ada');
        for (const query of ['?state=ringing', '?cursor=%00', '?page=2', `?search=${'x'.repeat(201)}`]) {
          expect((await list(cookie, query)).status, query).to.equal(400);
        }
      });

      it('lose their contact data after the retention period, but keep their outcomes', async () => {
        const cookie = await as('ada');
        const { keyValue } = await createKey(core.url, cookie);
        for (const requestId of ['over', 'queued']) {
          await placeCall(core.url, tenants.campaign.id, keyValue, {
            requestId,
            contact: { phone: somePhone(), name: 'Ada' },
            variables: { a: 'b' },
          });
        }
        await ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/by-request-id/over`, { key: keyValue });
        clock.advance({ days: 90 });
        expect(await eraseOldContacts(direct.ports, operator, 90)).to.equal(0);
        clock.advance({ seconds: 1 });
        expect(await eraseOldContacts(direct.ports, operator, 90)).to.equal(1);
        const { calls } = await listed(await as('ada'));
        expect(calls.map(({ requestId, contact, state }) => [requestId, contact.phone !== null, contact.name, state])).to.deep.equal([
          ['queued', true, 'Ada', 'queued'],
          ['over', false, null, 'cancelled'],
        ]);
        const variables: (string | null)[] = await direct.storage.database.read('calls').orderBy('contact_id').pluck('variables');
        expect(variables[0]).to.equal(null);
      });
    });

    describe('users', () => {
      const people = (cookie: string) => ask('GET', `${core.url}/console/users`, { cookie });
      const names = async (cookie: string) => {
        const { users } = usersSchema.strict().parse((await people(cookie)).json);
        return users.map(({ email }) => email.replace('@example.com', '')).sort();
      };
      const add = (cookie: string, body: object): Promise<Answer> =>
        ask('POST', `${core.url}/console/users`, { cookie, body: { email: 'new@example.com', name: 'New', ...body } });

      it("are listed within the viewer's scope", async () => {
        expect(await names(await as('pat'))).to.deep.equal(['ada', 'pat', 'sue', 'tia', 'tom']);
        expect(await names(await as('tia'))).to.deep.equal(['ada', 'tia', 'tom']);
        expect(await names(await staffIn({ kind: 'account', id: tenants.otherAccount.id }))).to.deep.equal(['oda']);
        expect(await names(await staffIn({ kind: 'partner', id: tenants.otherPartner.id }))).to.deep.equal(['oda', 'otto']);
        expect(await names(await as('stan'))).to.deep.equal(['stan']);
        const refused = await people(await as('ada'));
        expect([refused.status, readCode(refused)]).to.deep.equal([403, 'forbidden']);
      });

      const matrix: [string, object, number][] = [
        ['pat', { userType: 'account', accountId: 'account' }, 201],
        ['pat', { userType: 'account', accountId: 'otherAccount' }, 422],
        ['pat', { userType: 'account' }, 422],
        ['pat', { userType: 'partner' }, 201],
        ['pat', { userType: 'partner', accountId: 'siblingAccount' }, 201],
        ['pat', { userType: 'partner', partnerId: 'otherPartner' }, 422],
        ['pat', { userType: 'staff' }, 403],
        ['tia', { userType: 'account' }, 201],
        ['tia', { userType: 'account', accountId: 'siblingAccount' }, 422],
        ['tia', { userType: 'partner' }, 201],
        ['tia', { userType: 'staff' }, 403],
        ['stan', { userType: 'staff' }, 201],
        ['stan', { userType: 'account', accountId: 'account' }, 403],
        ['ada', { userType: 'account' }, 403],
      ];
      for (const [who, input, status] of matrix) {
        it(`${who} ${status === 201 ? 'creates' : 'cannot create'} ${JSON.stringify(input)}`, async () => {
          const ids = { account: tenants.account.id, siblingAccount: tenants.siblingAccount.id, otherAccount: tenants.otherAccount.id };
          const places = new Map(Object.entries({ ...ids, otherPartner: tenants.otherPartner.id }));
          const named = Object.fromEntries(
            Object.entries(input).map(([field, value]) => [field, field === 'userType' ? value : places.get(value)]),
          );
          const answer = await add(await as(who), named);
          expect(answer.status, answer.text).to.equal(status);
          if (status !== 201) return;
          const { user, password } = createdUserSchema.strict().parse(answer.json);
          const cookie = await signIn(core.url, user.email, password ?? '');
          expect((await ask('GET', `${core.url}/console/session`, { cookie })).json).to.include({ passwordChangeDue: true });
          // Never above: the new partner user of a limited user is limited as well.
          if (who === 'tia') expect(user.account?.id).to.equal(tenants.account.id);
        });
      }

      it("aren't created if the email address is taken", async () => {
        const answer = await add(await as('tia'), { userType: 'account', email: 'ADA@example.com' });
        expect([answer.status, readCode(answer)]).to.deep.equal([409, 'conflict']);
      });

      it('are deleted with their keys and sessions after a preview, and on request their queued calls are cancelled', async () => {
        const ada = await as('ada');
        const { keyValue } = await createKey(core.url, ada, 'CRM');
        const placed = await placeCall(core.url, tenants.campaign.id, keyValue);
        const tia = await as('tia');
        const url = `${core.url}/console/users/${tenants.users.account.id}`;
        const preview = deletionSchema.strict().parse((await ask('GET', `${url}/deletion`, { cookie: tia })).json);
        expect(preview.apiKeys.map(({ name, queuedCalls }) => [name, queuedCalls])).to.deep.equal([['CRM', 1]]);
        expect([preview.sessions, preview.user.apiKeys]).to.deep.equal([1, 1]);
        expect((await ask('DELETE', `${url}?cancelQueuedCalls=true`, { cookie: tia })).status).to.equal(204);
        expect((await placeCall(core.url, tenants.campaign.id, keyValue)).status).to.equal(401);
        expect((await ask('GET', `${core.url}/console/session`, { cookie: ada })).status).to.equal(401);
        const state: string[] = await direct.storage.database
          .read('calls')
          .where({ contact_id: textAt(placed, 'contactId') })
          .pluck('state');
        expect(state).to.deep.equal(['cancelled']);
        expect((await ask('DELETE', url, { cookie: tia })).status).to.equal(404);
      });

      it("can't delete themselves, or anyone outside their scope", async () => {
        const tia = await as('tia');
        const remove = (user: { id: string }) => ask('DELETE', `${core.url}/console/users/${user.id}`, { cookie: tia });
        const self = await remove(tenants.users.tied);
        expect([self.status, readCode(self)]).to.deep.equal([409, 'conflict']);
        for (const user of [tenants.users.partner, tenants.users.sibling, tenants.users.other, tenants.users.staff, { id: 'none' }]) {
          expect((await remove(user)).status).to.equal(404);
        }
        const ada = await as('ada');
        expect((await ask('DELETE', `${core.url}/console/users/${tenants.users.teammate.id}`, { cookie: ada })).status).to.equal(403);
      });
    });

    describe("resetting someone else's password", () => {
      const reset = (cookie: string, user: { id: string }) => ask('POST', `${core.url}/console/users/${user.id}/password`, { cookie });

      it('sets a new one-time password, disables the old one and ends all sessions', async () => {
        const ada = await as('ada');
        const answer = await reset(await as('tia'), tenants.users.account);
        expect(answer.status).to.equal(200);
        const { password } = resetPasswordSchema.strict().parse(answer.json);
        expect((await ask('GET', `${core.url}/console/session`, { cookie: ada })).status).to.equal(401);
        const oldOne = await ask('POST', `${core.url}/console/session`, { body: { email: 'ada@example.com', password: usualPassword } });
        expect(oldOne.status).to.equal(401);
        const session = await ask('POST', `${core.url}/console/session`, { body: { email: 'ada@example.com', password } });
        expect(session.status).to.equal(201);
        expect(session.json['passwordChangeDue']).to.equal(true);
      });

      it("doesn't change the user's keys", async () => {
        const { keyValue } = await createKey(core.url, await as('ada'));
        await reset(await as('pat'), tenants.users.account);
        expect((await placeCall(core.url, tenants.campaign.id, keyValue)).status).to.equal(202);
      });

      it('records an audit event without the password', async () => {
        const answer = await reset(await as('tia'), tenants.users.account);
        const events: object[] = await direct.storage.database.read('audit_events').where({ action: 'password.reset' });
        expect(events).to.have.length(1);
        expect(events[0]).to.include({ actor_id: tenants.users.tied.id, subject_id: tenants.users.account.id, address: '127.0.0.1' });
        expect(JSON.stringify(events)).not.to.contain(textAt(answer, 'password'));
      });

      it("isn't possible for oneself, or for anyone outside one's scope", async () => {
        const tia = await as('tia');
        const own = await reset(tia, tenants.users.tied);
        expect([own.status, readCode(own)]).to.deep.equal([409, 'conflict']);
        for (const user of [tenants.users.partner, tenants.users.sibling, tenants.users.other, tenants.users.staff, { id: 'none' }]) {
          const answer = await reset(tia, user);
          expect([answer.status, readCode(answer)]).to.deep.equal([404, 'not-found']);
        }
        const byAccountUser = await reset(await as('ada'), tenants.users.teammate);
        expect([byAccountUser.status, readCode(byAccountUser)]).to.deep.equal([403, 'forbidden']);
        expect((await ask('GET', `${core.url}/console/session`, { cookie: tia })).status).to.equal(200);
      });

      it('is limited, for staff, to users of the selected tenancy, or to other staff if no tenancy is selected', async () => {
        const inPartner = await staffIn({ kind: 'partner', id: tenants.partner.id });
        expect((await reset(inPartner, tenants.users.partner)).status).to.equal(200);
        expect((await reset(inPartner, tenants.users.otherPartner)).status).to.equal(404);
        expect((await reset(await as('stan'), tenants.users.other)).status).to.equal(404);
      });
    });

    describe('activity', () => {
      const activity = async (cookie: string, query = '') =>
        activitySchema.strict().parse((await ask('GET', `${core.url}/console/activity${query}`, { cookie })).json);
      const subjects = async (cookie: string) =>
        (await activity(cookie)).events.filter(({ action }) => action.startsWith('api-key')).map(({ subject }) => subject.name);

      it("is listed within the viewer's scope, newest first", async () => {
        await createKey(core.url, await as('ada'), 'of Ada');
        await createKey(core.url, await as('tom'), 'of Tom');
        await createKey(core.url, await as('sue'), 'of Sue');
        await createKey(core.url, await as('oda'), 'of Oda');
        expect(await subjects(await as('ada'))).to.deep.equal(['of Ada']);
        expect(await subjects(await as('tia'))).to.deep.equal(['of Tom', 'of Ada']);
        expect(await subjects(await as('pat'))).to.deep.equal(['of Sue', 'of Tom', 'of Ada']);
        expect(await subjects(await staffIn({ kind: 'account', id: tenants.otherAccount.id }))).to.deep.equal(['of Oda']);
        expect(await subjects(await as('stan'))).to.deep.equal([]);
      });

      it('includes each list that was saved from the console as a file', async () => {
        const [tia, cookie] = [await as('tia'), await as('ada')];
        const record = (body: object) => ask('POST', `${core.url}/console/exports`, { cookie, body });
        expect((await record({ list: 'api-keys', rows: 12 })).status).to.equal(204);
        for (const body of [{ list: 'passwords', rows: 1 }, { list: 'users', rows: -1 }, { list: 'users' }]) {
          expect((await record(body)).status, JSON.stringify(body)).to.equal(422);
        }
        expect((await activity(tia)).events[0]).to.deep.include({
          actor: { id: tenants.users.account.id, name: 'Ada Account', email: 'ada@example.com' },
          action: 'list.exported',
          subject: { kind: 'list', id: 'api-keys', name: 'api-keys (12 rows)' },
        });
      });

      it('records only as many exports as a person could make, even if a client reports more', async () => {
        const cookie = await as('sue');
        const record = () => ask('POST', `${core.url}/console/exports`, { cookie, body: { list: 'calls', rows: 1 } });
        const answers: Answer[] = [];
        for (let n = 0; n < 12; n++) answers.push(await record());
        expect(answers.map(({ status }) => status)).to.deep.equal([...Array(10).fill(204), 429, 429]);
        expect(Number(answers.at(-1)?.headers['retry-after'])).to.be.within(1, 60);
        expect((await activity(cookie)).events.filter(({ action }) => action === 'list.exported')).to.have.length(10);
      });

      it('shows in pages who did what, when and from where', async () => {
        const cookie = await as('ada');
        for (let n = 0; n < 60; n++) await createKey(core.url, cookie, `key ${n}`);
        const first = await activity(cookie);
        expect(first.events[0]).to.deep.include({
          actor: { id: tenants.users.account.id, name: 'Ada Account', email: 'ada@example.com' },
          action: 'api-key.created',
          address: '127.0.0.1',
        });
        const second = await activity(cookie, `?cursor=${first.nextCursor}`);
        expect([first.events.length, second.events.length, second.nextCursor]).to.deep.equal([50, 11, null]);
        expect(new Set([...first.events, ...second.events].map(({ id }) => id)).size).to.equal(61);
      });
    });
  });
});
