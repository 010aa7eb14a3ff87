import { expect } from 'chai';
import { activityFacetsSchema, activitySchema } from '#contract/console/activity.ts';
import { allCallsSummarySchema, callsSchema, callsSummarySchema } from '#contract/console/calls.ts';
import { auditEvent, toOwningScope } from '../../core/domain/audit/audit.ts';
import { fakeClock } from '../support/clock.ts';
import { type CoreHarness, openCore, type RunningCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKey, type DirectAccess, placeCall, signIn, type Tenants } from '../support/tenants.ts';

describe("in the console's lists and exports,", () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    let core: RunningCore;
    let close: CoreHarness['close'];
    let direct: DirectAccess;
    let tenants: Tenants;
    let cookie: string;
    let partner: string;
    let key: { id: string; keyValue: string };
    let otherKey: { id: string; keyValue: string };

    const at = (instant: string) => clock.set(instant);
    const signedIn = async () => {
      cookie = await signIn(core.url, 'ada@example.com');
      partner = await signIn(core.url, 'pat@example.com');
    };
    const place = async (requestId: string, more: object = {}, by = key, campaign = tenants.campaign.id) => {
      const body = { requestId, contact: { phone: '+493012345678', ...more } };
      expect((await placeCall(core.url, campaign, by.keyValue, body)).status).to.equal(202);
    };

    before(async () => {
      at('2026-11-07T20:00:00.000Z');
      ({ core, direct, tenants, close } = await openCore({ kind, clock, environment: { RETENTION_DAYS: '3650' } }));
      await signedIn();
      key = await createKey(core.url, cookie, 'Orders');
      otherKey = await createKey(core.url, partner, 'Recalls');
      // 23:00 in UTC is midnight in Berlin.
      at('2026-11-07T22:59:59.999Z');
      await place('before');
      at('2026-11-07T23:00:00.000Z');
      await place('first', { name: 'Zoë', phone: '+49302000456' });
      await place('recall', {}, otherKey, tenants.siblingCampaign.id);
      at('2026-11-08T22:59:59.999Z');
      await place('last', {}, otherKey);
      at('2026-11-08T23:00:00.000Z');
      await place('after');
      const cancel = `${core.url}/api/v1/campaigns/${tenants.campaign.id}/contacts/on-demand/by-request-id/first`;
      expect((await ask('DELETE', cancel, { key: key.keyValue })).status).to.equal(200);
      at('2026-11-21T09:00:00.000Z');
      await signedIn();
    });
    after(() => close());

    const get = (path: string, as = cookie) => ask('GET', core.url + path, { cookie: as });
    const the8th = 'from=2026-11-08&to=2026-11-08&timeZone=Europe/Berlin';
    const own = () => `/console/campaigns/${tenants.campaign.id}/calls`;
    const listIds = async (path: string, as = cookie) => {
      const answer = await get(path, as);
      expect(answer.status, answer.text).to.equal(200);
      const { calls, total, totalIsMore } = callsSchema.parse(answer.json);
      expect(total).to.deep.equal(calls.length);
      expect(totalIsMore).to.equal(false);
      return calls.map(({ requestId }) => requestId);
    };
    it('calls can be filtered by day in a time zone, to the millisecond', async () => {
      expect(await listIds(`${own()}?${the8th}`)).to.deep.equal(['last', 'first']);
      expect(await listIds(`${own()}?from=2026-11-08`)).to.deep.equal(['after', 'last']);
      expect(await listIds(`${own()}?to=2026-11-07`)).to.deep.equal(['first', 'before']);
    });

    it('the calls of all campaigns in scope are listed newest first, with their campaigns', async () => {
      expect(await listIds('/console/calls')).to.deep.equal(['after', 'last', 'first', 'before']);
      expect(await listIds(`/console/calls?${the8th}`, partner)).to.deep.equal(['last', 'recall', 'first']);
      const { calls } = callsSchema.parse((await get('/console/calls?search=recall', partner)).json);
      expect(calls.map(({ campaign }) => campaign)).to.deep.equal([{ id: tenants.siblingCampaign.id, name: 'Recalls' }]);
    });

    it('calls can be filtered by state and by key', async () => {
      expect(await listIds(`${own()}?state=cancelled`)).to.deep.equal(['first']);
      expect(await listIds(`${own()}?state=cancelled&state=queued&${the8th}`)).to.deep.equal(['last', 'first']);
      expect(await listIds(`/console/calls?apiKey=${otherKey.id}`, partner)).to.deep.equal(['last', 'recall']);
      expect((await get(`${own()}?apiKey=${otherKey.id}`)).status).to.equal(404);
    });

    it('a search finds the call to a number, with its national prefix or any part of its digits', async () => {
      for (const number of ['+49 (0)30 2000-4', '030 2000', '302000456'])
        expect(await listIds(`${own()}?search=${encodeURIComponent(number)}`), number).to.deep.equal(['first']);
    });

    it("a search for fewer than three digits doesn't ignore what's between them", async () => {
      expect(await listIds(`${own()}?search=${encodeURIComponent('0 3')}`)).to.deep.equal([]);
    });

    it('calls are counted by day with the same filters as in the list', async () => {
      const days = async (query: string) => {
        const { days } = callsSummarySchema.parse((await get(`${own()}/summary?${query}`)).json);
        return days.map(({ day, states }) => [day, states]);
      };
      expect(await days(the8th)).to.deep.equal([['2026-11-08', { cancelled: 1, queued: 1 }]]);
      expect(await days(`${the8th}&apiKey=${key.id}`)).to.deep.equal([['2026-11-08', { cancelled: 1 }]]);
      expect(await days(`${the8th}&search=last&state=queued`)).to.deep.equal([['2026-11-08', { queued: 1 }]]);
      const all = await get(`/console/calls/summary?${the8th}&search=last`, partner);
      expect(allCallsSummarySchema.parse(all.json).days).to.deep.equal([
        { day: '2026-11-08', campaigns: [{ id: tenants.campaign.id, states: { queued: 1 } }] },
      ]);
      const range = 'from=2026-10-01&to=2026-11-07&timeZone=UTC';
      expect((await days(range)).at(-1)).to.deep.equal(['2026-11-07', { cancelled: 1, queued: 1 }]);
      expect(await days(range)).to.have.length(38);
    });

    it('calls.csv contains all filtered calls, says in its last line that it is complete, and is recorded as an export', async () => {
      const answer = await get(`/console/calls.csv?${the8th}`, partner);
      expect(answer.headers['content-type']).to.equal('text/csv; charset=utf-8');
      const lines = answer.text.split('\r\n');
      expect(lines.map((line) => line.split(',').slice(0, 2).join())).to.deep.equal([
        '"Campaign","Request ID"',
        '"Appointment reminders","last"',
        '"Recalls","recall"',
        '"Appointment reminders","first"',
        '# complete, 3 rows',
        '',
      ]);
      expect(answer.text).to.include(`"'+49302000456"`);
      const { events } = activitySchema.parse((await get('/console/activity?action=list.exported', partner)).json);
      expect(events.map(({ subject }) => subject.name)).to.deep.equal(['calls (from 2026-11-08 to 2026-11-08)']);
    });

    it("a campaign's file is named after it and its days, and has the contacts' IDs and the times of the zone", async () => {
      const answer = await get(`/console/campaigns/${tenants.campaign.id}/calls.csv?${the8th}`, partner);
      expect(answer.headers['content-disposition']).to.equal('attachment; filename="calls-Appointment-reminders-2026-11-08.csv"');
      const { calls } = callsSchema.parse((await get(`/console/campaigns/${tenants.campaign.id}/calls?${the8th}`, partner)).json);
      const lines = answer.text.split('\r\n').map((line) => line.split(',').map((cell) => cell.slice(1, -1)));
      const [head = [], first = []] = lines;
      const shown = (column: string) => first[head.indexOf(column)];
      expect(shown('Contact ID')).to.equal(calls[0]?.contactId);
      expect([shown('Placed')?.slice(-6), Date.parse(shown('Placed') ?? '')]).to.deep.equal([
        '+01:00',
        Date.parse(calls[0]?.placedAt ?? ''),
      ]);
    });

    it('events can be searched by name, detail, address and ID', async () => {
      const events = async (search: string) => {
        const view = activitySchema.parse((await get(`/console/activity?search=${encodeURIComponent(search)}`, partner)).json);
        return view.events.map(({ action, subject }) => `${action} ${subject.name}`);
      };
      expect(await events('ÓRDERS')).to.deep.equal(['api-key.created Orders']);
      expect(await events(key.id)).to.deep.equal(['api-key.created Orders']);
      expect(await events('no such thing')).to.deep.equal([]);
    });

    it('events can be filtered by user, action, subject and day', async () => {
      const events = async (query: string) => {
        const view = activitySchema.parse((await get(`/console/activity?${query}`, partner)).json);
        expect(view.total).to.equal(view.events.length);
        return view.events.map(({ action, subject }) => `${action} ${subject.name}`);
      };
      const { account, partner: pat } = tenants.users;
      expect(await events(`action=api-key.created`)).to.deep.equal(['api-key.created Recalls', 'api-key.created Orders']);
      expect(await events(`action=api-key.created&actor=${account.id}`)).to.deep.equal(['api-key.created Orders']);
      expect(await events(`subject=${key.id}`)).to.deep.equal(['api-key.created Orders']);
      expect(await events(`actor=${pat.id}&from=2026-11-07&to=2026-11-07&action=api-key.created`)).to.have.length(1);
      expect(await events(`action=api-key.created&from=2026-11-08`)).to.deep.equal([]);
      expect((await events('actor=operator&action=account.added')).length).to.equal(2);
      expect(await events('action=backup.created')).to.deep.equal([]);
    });

    it("the users and actions to filter by are those that occur in the viewer's scope", async () => {
      const facets = activityFacetsSchema.parse((await get('/console/activity/facets', partner)).json);
      expect(facets.actors.map(({ name }) => name)).to.have.members(['The operator', 'Ada Account', 'Pat Partner']);
      expect(facets.actions).to.include.members(['account.added', 'api-key.created', 'session.started', 'user.added']);
      const mine = activityFacetsSchema.parse((await get('/console/activity/facets')).json);
      expect(mine.actors.map(({ name }) => name)).to.deep.equal(['Ada Account']);
    });

    // PostgreSQL's limit is twice as high, and adding that many events takes too long.
    if (kind === 'sqlite')
      it('more users may have acted than a statement can have parameters', async () => {
        const { query, write } = direct.storage.database;
        await query(
          `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 33000)
           INSERT INTO audit_events (id, at, actor_id, actor_name, action, subject_kind, subject_id, subject_name, partner_id, address)
           SELECT 'many-' || n, 0, 'many-' || n, 'One of many', 'session.started', 'session', 'many', 'Many', ?, 'local' FROM numbers`,
          [tenants.partner.id],
          write,
        );
        const answer = await get('/console/activity/facets', partner);
        await write('audit_events').where({ subject_id: 'many' }).delete();
        expect(answer.status).to.equal(200);
        expect(activityFacetsSchema.parse(answer.json).actors.length).to.be.greaterThan(33_000);
      });

    it('activity.csv contains all filtered events, and says in its last line that it is complete', async () => {
      const { text } = await get('/console/activity.csv?action=api-key.created', partner);
      expect(
        text
          .split('\r\n')
          .slice(1)
          .map((line) => line.split(',')[4]),
      ).to.deep.equal(['"Recalls"', '"Orders"', undefined, undefined]);
      expect(text).to.match(/\r\n# complete, 2 rows\r\n$/);
    });

    it("events include the email address of the user who acted, but show staff's addresses only to staff", async () => {
      const staff = await signIn(core.url, 'stan@example.com');
      await ask('PUT', `${core.url}/console/session/tenancy`, { cookie: staff, body: { kind: 'partner', id: tenants.partner.id } });
      await createKey(core.url, staff, 'Of staff');
      const listActors = async (as: string) => {
        const { events } = activitySchema.parse((await get('/console/activity?action=api-key.created', as)).json);
        return events.map(({ actor }) => `${actor?.name} ${actor?.email}`);
      };
      const others = ['Pat Partner pat@example.com', 'Ada Account ada@example.com'];
      expect(await listActors(partner)).to.deep.equal(['Stan Staff undefined', ...others]);
      expect(await listActors(staff)).to.deep.equal(['Stan Staff stan@example.com', ...others]);
      const { actors } = activityFacetsSchema.parse((await get('/console/activity/facets', partner)).json);
      expect(actors.map(({ email }) => email ?? null)).to.have.members([null, null, 'ada@example.com', 'pat@example.com']);
    });

    it('activity.csv includes the reason for revoking a key', async () => {
      const { id } = await createKey(core.url, cookie, 'Leaked');
      await ask('DELETE', `${core.url}/console/api-keys/${id}?reason=leaked&note=on+GitHub`, { cookie });
      const { text } = await get('/console/activity.csv?action=api-key.revoked');
      expect(text).to.include('"leaked: on GitHub"');
    });

    it("activity.csv doesn't name the operator as the sender of a refused request", async () => {
      const { ports } = direct;
      const subject = { kind: 'api-key', id: key.id, name: 'Orders' } as const;
      const stranger = { who: null, address: '192.0.2.7' };
      await ports.stores.activity.record(auditEvent(ports, stranger, 'api-key.refused', subject, toOwningScope(tenants.users.account)));
      const { text } = await get('/console/activity.csv?action=api-key.refused', partner);
      expect(text).to.include(',"Someone","api-key.refused",').and.not.to.include('The operator');
    });
  });
});
