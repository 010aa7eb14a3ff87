import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { callsSchema } from '#contract/console/calls.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask } from '../support/http.ts';
import { openForEach } from '../support/suites.ts';
import { createKey, onDemand, placeCall, signIn, somePhone } from '../support/tenants.ts';

describe('calls and activity in the console', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();

    beforeEach(() => {
      clock.set('2026-11-21T09:00:00.000Z');
    });
    const harness = openForEach(() => openCore({ kind, clock }));

    const as = (name: string) => signIn(harness.core.url, `${name}@example.com`);
    const staffIn = async (tenancy: object) => {
      const cookie = await as('stan');
      await ask('PUT', `${harness.core.url}/console/session/tenancy`, { cookie, body: tenancy });
      return cookie;
    };

    describe('calls', () => {
      const list = async (cookie: string, query = '', campaign = harness.tenants.campaign.id) =>
        ask('GET', `${harness.core.url}/console/campaigns/${campaign}/calls${query}`, { cookie });
      const listed = async (cookie: string, query = '') => callsSchema.strict().parse((await list(cookie, query)).json);

      it('are listed newest first, 50 per page, each exactly once even if more calls are placed while paging', async () => {
        const cookie = await as('ada');
        const { keyValue } = await createKey(harness.core.url, cookie);
        for (let n = 0; n < 120; n++)
          await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue, { requestId: `r${n}`, contact: { phone: somePhone() } });
        const seen: string[] = [];
        let query = '';
        for (const expected of [50, 50, 20]) {
          const { calls, nextCursor } = await listed(cookie, query);
          expect(calls).to.have.length(expected);
          seen.push(...calls.map(({ requestId }) => requestId));
          query = `?cursor=${nextCursor}`;
          await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue);
          if (expected === 20) expect(nextCursor).to.equal(null);
        }
        expect([...seen].sort()).to.deep.equal(Array.from({ length: 120 }, (_, n) => `r${n}`).sort());
      });

      it('can be found by state, contact name, phone number and request ID', async () => {
        const cookie = await as('ada');
        const { keyValue } = await createKey(harness.core.url, cookie);
        const place = (requestId: string, contact: object) =>
          placeCall(harness.core.url, harness.tenants.campaign.id, keyValue, { requestId, contact });
        await place('one', { phone: '+493012345678', name: 'Ada Lovelace' });
        await place('two', { phone: '+493087654321', name: '100 %' });
        await place('three', { phone: '+493011112222' });
        await ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/by-request-id/two`, { key: keyValue });
        const findRequestIds = async (query: string) => (await listed(cookie, query)).calls.map(({ requestId }) => requestId);
        expect(await findRequestIds('?state=cancelled')).to.deep.equal(['two']);
        expect(await findRequestIds('?state=queued')).to.deep.equal(['three', 'one']);
        expect(await findRequestIds('?search=LOVELACE')).to.deep.equal(['one']);
        expect(await findRequestIds('?state=&search=&cursor=')).to.have.length(3);
        await place('four', { phone: '+493022223333', name: 'Österreich' });
        expect(await findRequestIds(`?search=${encodeURIComponent('Öster')}`)).to.deep.equal(['four']);
        await ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/by-request-id/four`, { key: keyValue });
        await harness.direct.storage.database.write('calls').where({ request_id: 'four' }).delete();
        expect(await findRequestIds('?search=87654')).to.deep.equal(['two']);
        expect(await findRequestIds('?search=thre')).to.deep.equal(['three']);
        expect(await findRequestIds('?search=%25')).to.deep.equal(['two']);
        expect(await findRequestIds('?search=_')).to.deep.equal([]);
        expect(await findRequestIds('?state=queued&search=one')).to.deep.equal(['one']);
      });

      it("show the key that placed them, even if it's revoked, to viewers who can see that key", async () => {
        const ada = await as('ada');
        const key = await createKey(harness.core.url, ada, 'CRM');
        await placeCall(harness.core.url, harness.tenants.campaign.id, key.keyValue);
        const owner = (isYou: boolean) => ({ id: key.id, name: 'CRM', owner: { isYou, name: 'Ada Account' } });
        expect((await listed(ada)).calls[0]?.apiKey).to.deep.equal(owner(true));
        expect((await listed(await as('tom'))).calls[0]?.apiKey).to.equal(null);
        expect((await listed(await as('pat'))).calls[0]?.apiKey).to.deep.equal(owner(false));
        await ask('DELETE', `${harness.core.url}/console/api-keys/${key.id}`, { cookie: ada });
        expect((await listed(await as('tia'))).calls[0]?.apiKey).to.deep.equal(owner(false));
      });

      it("aren't listed if the query is invalid", async () => {
        const cookie = await as('ada');
        for (const query of ['?state=ringing', '?cursor=%00', '?page=2', `?search=${'x'.repeat(201)}`]) {
          expect((await list(cookie, query)).status, query).to.equal(400);
        }
      });
    });

    describe('activity', () => {
      const activity = async (cookie: string, query = '') =>
        activitySchema.strict().parse((await ask('GET', `${harness.core.url}/console/activity${query}`, { cookie })).json);
      const subjects = async (cookie: string) =>
        (await activity(cookie)).events.filter(({ action }) => action.startsWith('api-key')).map(({ subject }) => subject.name);

      it("is listed within the viewer's scope, newest first", async () => {
        await createKey(harness.core.url, await as('ada'), 'of Ada');
        await createKey(harness.core.url, await as('tom'), 'of Tom');
        await createKey(harness.core.url, await as('sue'), 'of Sue');
        await createKey(harness.core.url, await as('oda'), 'of Oda');
        expect(await subjects(await as('ada'))).to.deep.equal(['of Ada']);
        expect(await subjects(await as('tia'))).to.deep.equal(['of Tom', 'of Ada']);
        expect(await subjects(await as('pat'))).to.deep.equal(['of Sue', 'of Tom', 'of Ada']);
        expect(await subjects(await staffIn({ kind: 'account', id: harness.tenants.otherAccount.id }))).to.deep.equal(['of Oda']);
        expect(await subjects(await as('stan'))).to.deep.equal([]);
      });

      it('includes each list that was saved from the console as a file', async () => {
        const [tia, cookie] = [await as('tia'), await as('ada')];
        const record = (body: object) => ask('POST', `${harness.core.url}/console/exports`, { cookie, body });
        expect((await record({ list: 'api-keys', rows: 12 })).status).to.equal(204);
        for (const body of [{ list: 'passwords', rows: 1 }, { list: 'users', rows: -1 }, { list: 'users' }]) {
          expect((await record(body)).status, JSON.stringify(body)).to.equal(422);
        }
        expect((await activity(tia)).events[0]).to.deep.include({
          actor: { id: harness.tenants.users.account.id, name: 'Ada Account', email: 'ada@example.com' },
          action: 'list.exported',
          subject: { kind: 'list', id: 'api-keys', name: 'api-keys (12 rows)' },
        });
      });

      it('records only as many exports as a person could make, even if a client reports more', async () => {
        const cookie = await as('sue');
        const record = () => ask('POST', `${harness.core.url}/console/exports`, { cookie, body: { list: 'calls', rows: 1 } });
        const answers: Answer[] = [];
        for (let n = 0; n < 62; n++) answers.push(await record());
        expect(answers.map(({ status }) => status)).to.deep.equal([...Array(60).fill(204), 429, 429]);
        expect(Number(answers.at(-1)?.headers['retry-after'])).to.be.within(1, 60);
        expect((await activity(cookie, '?action=list.exported')).total).to.equal(60);
      });

      it('shows in pages who did what, when and from where', async () => {
        const cookie = await as('ada');
        for (let n = 0; n < 60; n++) await createKey(harness.core.url, cookie, `key ${n}`);
        // A test in another process may sign in here as Ada by mistake, if this core got the port of a core that the test has stopped.
        const first = await activity(cookie, '?action=api-key.created');
        expect(first.events[0]).to.deep.include({
          actor: { id: harness.tenants.users.account.id, name: 'Ada Account', email: 'ada@example.com' },
          action: 'api-key.created',
          address: '127.0.0.1',
        });
        const second = await activity(cookie, `?action=api-key.created&cursor=${first.nextCursor}`);
        expect([first.events.length, second.events.length, second.nextCursor]).to.deep.equal([50, 10, null]);
        expect(new Set([...first.events, ...second.events].map(({ id }) => id)).size).to.equal(60);
      });
    });
  });
});
