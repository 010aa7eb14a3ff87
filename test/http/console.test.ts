import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { callsSchema } from '#contract/console/calls.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createCampaign } from '../../core/domain/directory/directory.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, insertCalls, placeCall, signIn } from '../support/tenants.ts';

describe('calls and activity in the console', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();

    beforeEach(() => {
      clock.set('2026-11-21T09:00:00.000Z');
    });
    const harness = openOnce(() => openCore({ kind, clock }));

    const as = (name: string) => signIn(harness.core.url, `${name}@example.com`);
    const staffIn = async (tenancy: object) => {
      const cookie = await as('stan');
      await ask('PUT', `${harness.core.url}/console/session/tenancy`, { cookie, body: tenancy });
      return cookie;
    };

    it('calls are listed newest first, 50 per page, each exactly once even if more calls are placed while paging', async () => {
      const cookie = await as('ada');
      const { keyValue } = await createKey(harness.core.url, cookie);
      const { id } = await createCampaign(harness.direct.ports, operator, 'Its own', harness.tenants.account.id);
      const ids = Array.from({ length: 120 }, (_, n) => `${n}`.padStart(9, '0'));
      await insertCalls(harness.direct, harness.tenants, ids, { campaign_id: id });
      const seen: string[] = [];
      let query = '';
      for (const expected of [50, 50, 20]) {
        const answer = await ask('GET', `${harness.core.url}/console/campaigns/${id}/calls${query}`, { cookie });
        const { calls, nextCursor } = callsSchema.strict().parse(answer.json);
        expect(calls).to.have.length(expected);
        seen.push(...calls.map(({ requestId }) => requestId));
        query = `?cursor=${nextCursor}`;
        await placeCall(harness.core.url, id, keyValue);
        if (expected === 20) expect(nextCursor).to.equal(null);
      }
      expect([...seen].sort()).to.deep.equal(ids.sort());
    });

    describe('activity', () => {
      const activity = async (cookie: string, query = '') =>
        activitySchema.strict().parse((await ask('GET', `${harness.core.url}/console/activity${query}`, { cookie })).json);
      const subjects = async (cookie: string) =>
        (await activity(cookie)).events.map(({ subject }) => subject.name).filter((name) => name.startsWith('of '));

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

      it('shows in pages who did what, when and from where', async () => {
        const cookie = await as('otto');
        for (let n = 0; n < 60; n++) await createKey(harness.core.url, cookie, `key ${n}`);
        const own = `?action=api-key.created&actor=${harness.tenants.users.otherPartner.id}`;
        const first = await activity(cookie, own);
        expect(first.events[0]).to.deep.include({
          actor: { id: harness.tenants.users.otherPartner.id, name: harness.tenants.users.otherPartner.name, email: 'otto@example.com' },
          action: 'api-key.created',
          address: '127.0.0.1',
        });
        const second = await activity(cookie, `${own}&cursor=${first.nextCursor}`);
        expect([first.events.length, second.events.length, second.nextCursor]).to.deep.equal([50, 10, null]);
        expect(new Set([...first.events, ...second.events].map(({ id }) => id)).size).to.equal(60);
      });

      // The counters are tested on both databases, in storage/throttle.test.ts.
      if (kind === 'postgres') return;
      it('records only as many exports as a person could make, even if a client reports more', async () => {
        const cookie = await as('sue');
        const record = () => ask('POST', `${harness.core.url}/console/exports`, { cookie, body: { list: 'calls', rows: 1 } });
        const answers: Answer[] = [];
        for (let n = 0; n < 62; n++) answers.push(await record());
        expect(answers.map(({ status }) => status)).to.deep.equal([...Array(60).fill(204), 429, 429]);
        expect(Number(answers.at(-1)?.headers['retry-after'])).to.be.within(1, 60);
        expect(answers.at(-1)?.text).to.contain('At most 60 exports per minute are allowed.');
        expect((await activity(cookie, '?action=list.exported')).total).to.equal(60);
      });
    });
  });
});
