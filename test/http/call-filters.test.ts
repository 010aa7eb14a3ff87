import { expect } from 'chai';
import { activityFacetsSchema, activitySchema } from '#contract/console/activity.ts';
import { allCallsSummarySchema, callsSchema, callsSummarySchema } from '#contract/console/calls.ts';
import { activityFacets } from '../../core/domain/audit/activity.ts';
import { auditEvent, toOwningScope } from '../../core/domain/audit/audit.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { viewers } from '../support/ports.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

describe("in the console's lists and exports,", () => {
  onEachDatabase((kind) => {
    const clock = fakeClock('2026-11-07T20:00:00.000Z');
    const its = openOnce(() => openCore({ kind, clock, environment: { RETENTION_DAYS: '3650' } }));
    let cookie: string;
    let partner: string;
    let key: { id: string; keyValue: string };
    let otherKey: { id: string; keyValue: string };

    const at = (instant: string) => clock.set(instant);
    const signedIn = async () => {
      cookie = await signIn(its.core.url, 'ada@example.com');
      partner = await signIn(its.core.url, 'pat@example.com');
    };
    const place = async (requestId: string, more: object = {}, by = key, campaign = its.tenants.campaign.id) => {
      const body = { requestId, contact: { phone: '+493012345678', ...more } };
      expect((await placeCall(its.core.url, campaign, by.keyValue, body)).status).to.equal(202);
    };

    before(async () => {
      await signedIn();
      key = await createKey(its.core.url, cookie, 'Orders');
      otherKey = await createKey(its.core.url, partner, 'Recalls');
      // 23:00 in UTC is midnight in Berlin.
      at('2026-11-07T22:59:59.999Z');
      await place('before');
      at('2026-11-07T23:00:00.000Z');
      await place('first', { name: 'Zoë', phone: '+49302000456' });
      await place('recall', {}, otherKey, its.tenants.siblingCampaign.id);
      at('2026-11-08T22:59:59.999Z');
      await place('last', {}, otherKey);
      at('2026-11-08T23:00:00.000Z');
      await place('after', { name: '100 %' });
      const cancel = `${its.core.url}/api/v1/campaigns/${its.tenants.campaign.id}/contacts/on-demand/by-request-id/first`;
      expect((await ask('DELETE', cancel, { key: key.keyValue })).status).to.equal(200);
      at('2026-11-21T09:00:00.000Z');
      await signedIn();
    });

    const get = (path: string, as = cookie) => ask('GET', its.core.url + path, { cookie: as });
    const the8th = 'from=2026-11-08&to=2026-11-08&timeZone=Europe/Berlin';
    const own = () => `/console/campaigns/${its.tenants.campaign.id}/calls`;
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
      expect(calls.map(({ campaign }) => campaign)).to.deep.equal([{ id: its.tenants.siblingCampaign.id, name: 'Recalls' }]);
    });

    it('calls can be filtered by state and by key', async () => {
      expect(await listIds(`${own()}?state=cancelled`)).to.deep.equal(['first']);
      expect(await listIds(`${own()}?state=cancelled&state=queued&${the8th}`)).to.deep.equal(['last', 'first']);
      expect(await listIds(`/console/calls?apiKey=${otherKey.id}`, partner)).to.deep.equal(['last', 'recall']);
    });

    for (const path of ['', '.csv', '/summary'])
      it(`calls${path} can't be filtered by a key that the user doesn't see`, async () => {
        for (const calls of [own(), '/console/calls'])
          expect((await get(`${calls}${path}?apiKey=${otherKey.id}&timeZone=UTC`)).status, calls).to.equal(404);
      });

    it("a search finds calls by name, any part of a request ID, and a number's digits, and takes wildcards literally", async () => {
      for (const [search, found] of [
        ...['ZOE', 'irs', '+49 (0)30 2000-4', '030 2000', '302000456'].map((text) => [text, ['first']] as const),
        ['%', ['after']],
        ['_', []],
        // Fewer than three digits are searched for with what's between them.
        ['0 3', []],
      ] as const)
        expect(await listIds(`${own()}?search=${encodeURIComponent(search)}`), search).to.deep.equal(found);
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
        { day: '2026-11-08', campaigns: [{ id: its.tenants.campaign.id, states: { queued: 1 } }] },
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
      const answer = await get(`/console/campaigns/${its.tenants.campaign.id}/calls.csv?${the8th}`, partner);
      expect(answer.headers['content-disposition']).to.equal('attachment; filename="calls-Appointment-reminders-2026-11-08.csv"');
      const { calls } = callsSchema.parse((await get(`/console/campaigns/${its.tenants.campaign.id}/calls?${the8th}`, partner)).json);
      const lines = answer.text.split('\r\n').map((line) => line.split(',').map((cell) => cell.slice(1, -1)));
      const [head = [], first = []] = lines;
      const shown = (column: string) => first[head.indexOf(column)];
      expect(shown('Contact ID')).to.equal(calls[0]?.contactId);
      expect([shown('Placed')?.slice(-6), Date.parse(shown('Placed') ?? '')]).to.deep.equal([
        '+01:00',
        Date.parse(calls[0]?.placedAt ?? ''),
      ]);
    });

    it('events can be searched by name and ID, and filtered by user, action, subject and day', async () => {
      const events = async (query: string) => {
        const view = activitySchema.parse((await get(`/console/activity?${query}`, partner)).json);
        expect(view.total).to.equal(view.events.length);
        return view.events.map(({ action, subject }) => `${action} ${subject.name}`);
      };
      const { account, partner: pat } = its.tenants.users;
      const orders = ['api-key.created Orders'];
      for (const query of [
        ...[`search=${encodeURIComponent('ÓRDERS')}`, `search=${key.id}`, `subject=${key.id}`],
        `action=api-key.created&actor=${account.id}`,
      ])
        expect(await events(query), query).to.deep.equal(orders);
      expect(await events('search=no such thing')).to.deep.equal([]);
      expect(await events(`action=api-key.created`)).to.deep.equal(['api-key.created Recalls', ...orders]);
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
        const { query, write } = its.direct.storage.database;
        await query(
          `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 33000)
           INSERT INTO audit_events (id, at, actor_id, actor_name, action, subject_kind, subject_id, subject_name, partner_id, address)
           SELECT 'many-' || n, 0, 'many-' || n, 'One of many', 'session.started', 'session', 'many', 'Many', ?, 'local' FROM numbers`,
          [its.tenants.partner.id],
          write,
        );
        const { ports } = its.direct;
        const { actors } = await activityFacets(ports, { ...viewers.partner, partner: its.tenants.partner }).finally(() =>
          write('audit_events').where({ subject_id: 'many' }).delete(),
        );
        expect(actors.length).to.be.greaterThan(33_000);
      });

    it("events include the email address of the user who acted, but show staff's addresses only to staff", async () => {
      const staff = await signIn(its.core.url, 'stan@example.com');
      await ask('PUT', `${its.core.url}/console/session/tenancy`, { cookie: staff, body: { kind: 'partner', id: its.tenants.partner.id } });
      await createKey(its.core.url, staff, 'Of staff');
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

    it('activity.csv contains all filtered events with their details, and says in its last line that it is complete', async () => {
      const keys = [await createKey(its.core.url, cookie, 'Leaked'), await createKey(its.core.url, cookie, 'Unused')];
      for (const { id } of keys) await ask('DELETE', `${its.core.url}/console/api-keys/${id}?reason=leaked&note=on+GitHub`, { cookie });
      const { text } = await get('/console/activity.csv?action=api-key.revoked');
      expect(text.match(/"(Leaked|Unused)"|"leaked: on GitHub"/g)).to.deep.equal([
        ...['"Unused"', '"leaked: on GitHub"', '"Leaked"', '"leaked: on GitHub"'],
      ]);
      expect(text).to.match(/\r\n# complete, 2 rows\r\n$/);
    });

    it("activity.csv doesn't name the operator as the sender of a refused request", async () => {
      const { ports } = its.direct;
      const subject = { kind: 'api-key', id: key.id, name: 'Orders' } as const;
      const stranger = { who: null, address: '192.0.2.7' };
      await ports.stores.activity.record(auditEvent(ports, stranger, 'api-key.refused', subject, toOwningScope(its.tenants.users.account)));
      const { text } = await get('/console/activity.csv?action=api-key.refused', partner);
      expect(text).to.include(',"Someone","api-key.refused",').and.not.to.include('The operator');
    });
  });
});
