import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { CallView } from '#contract/console/calls.ts';
import { tenancyHeader } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import { instant } from '../../core/domain/instant.ts';
import { soon } from '../../core/storage/queue/queue.ts';
import { onEachDatabase } from '../support/databases.ts';
import { daily } from '../support/hours-rules.ts';
import { ask } from '../support/http.ts';
import { dialerForEach } from '../support/provider.ts';
import { createKey, insertCalls, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('stopping', () => {
  onEachDatabase((kind) => {
    const dialer = dialerForEach(kind);
    const as = async (who: string) => ({ cookie: await signIn(dialer.core.url, `${who}@example.com`) });
    const stops = () => `${dialer.core.url}/console/stops`;
    const stop = (who: object, body: object) => ask('POST', stops(), { ...who, body });
    afterEach(() => {
      soon.ms = 700;
    });
    const list = async (who: object) => Object((await ask('GET', stops(), who)).json).stops;

    it('responds only when the hand-offs under way have ended, and no request begins after its response', async () => {
      const open: ServerResponse[] = [];
      await dialer.start({ DIALER_CONCURRENCY: '3' }, (_, response) => open.push(response));
      for (let n = 0; n < 6; n++) await dialer.place();
      await dialer.receiver.until(3);
      let isOver = false;
      const stopping = stop(
        { cookie: dialer.cookie },
        { scope: 'account', id: dialer.tenants.account.id, reason: 'Wrong recording' },
      ).finally(() => {
        isOver = true;
      });
      await until(async () => (await list({ cookie: dialer.cookie })).length === 1);
      expect(isOver).to.equal(false);
      for (const response of open.splice(0)) response.writeHead(202).end();
      const stopped = await stopping;
      expect(stopped.status, stopped.text).to.equal(201);
      expect(stopped.json).to.deep.include({ queuedCalls: 3, withProvider: 3 });
      const started = dialer.receiver.received.length;
      expect((await dialer.place()).status).to.equal(202);
      const metrics = await ask('GET', `${dialer.core.managementUrl}/metrics`);
      expect(metrics.text).to.contain('\ncallkey_dialer_waiting{why="stop"} 4\n');
      expect(metrics.text).to.contain('\ncallkey_dialing_stops{scope="account"} 1\n');
      expect(metrics.text).to.contain('\ncallkey_dialing_stops{scope="campaign"} 0\n');
      expect([started, dialer.receiver.received.length]).to.deep.equal([3, 3]);
      const { id } = Object(stopped.json).stop;
      expect((await ask('DELETE', `${stops()}/${id}`, { cookie: dialer.cookie })).status).to.equal(204);
      await dialer.receiver.until(6);
      for (const response of open) response.writeHead(202).end();
      await dialer.receiver.until(7);
      for (const response of open) if (!response.writableEnded) response.writeHead(202).end();
    });

    it('stops something else right away while the same user waits for the provider', async () => {
      const open: ServerResponse[] = [];
      await dialer.start({}, (_, response) => open.push(response));
      await dialer.place();
      await dialer.receiver.until(1);
      const who = { cookie: dialer.cookie };
      const first = stop(who, { scope: 'campaign', id: dialer.tenants.campaign.id });
      await until(async () => (await list(who)).length === 1);
      const second = stop(who, { scope: 'account', id: dialer.tenants.account.id });
      await until(async () => (await list(who)).length === 2);
      for (const response of open) response.writeHead(202).end();
      for (const { status, text } of await Promise.all([first, second])) expect(status, text).to.equal(201);
    });

    it('is shown to everyone whom it stops, and resumed only by those who may', async () => {
      await dialer.start({ DIALER: 'off' });
      const { account, partner, campaign, otherAccount } = dialer.tenants;
      const [ada, teammate, pat, tia, oda] = [await as('ada'), await as('tom'), await as('pat'), await as('tia'), await as('oda')];
      const stan = { ...(await as('stan')), headers: { [tenancyHeader]: `partner/${partner.id}` } };
      const first = await stop(ada, { scope: 'campaign', id: campaign.id, reason: 'Lunch' });
      expect([first.status, Object(first.json).stop]).to.deep.equal([
        201,
        {
          ...{ id: Object(first.json).stop.id, scope: 'campaign', target: { id: campaign.id, name: campaign.name } },
          ...{
            at: Object(first.json).stop.at,
            by: { id: dialer.tenants.users.account.id, name: 'Ada Account' },
            reason: 'Lunch',
            mayResume: true,
          },
        },
      ]);
      const again = await stop(pat, { scope: 'campaign', id: campaign.id });
      expect([again.status, Object(again.json).stop]).to.deep.equal([200, Object(first.json).stop]);
      expect((await list(teammate)).map(({ mayResume }: { mayResume: boolean }) => mayResume)).to.deep.equal([false]);
      const made = new Map<string, string>();
      for (const [who, name, body] of [
        [pat, 'account', { scope: 'account', id: account.id }],
        [pat, 'partner', { scope: 'partner', id: partner.id }],
        [stan, 'server', { scope: 'server' }],
      ] as const)
        made.set(name, Object((await stop(who, body)).json).stop.id);
      expect((await list(ada)).map(({ scope }: { scope: string }) => scope)).to.deep.equal(['server', 'partner', 'account', 'campaign']);
      expect((await list(oda)).map(({ scope }: { scope: string }) => scope)).to.deep.equal(['server']);
      const end = async (who: object, id = '') => (await ask('DELETE', `${stops()}/${id}`, who)).status;
      const campaignStop = Object(first.json).stop.id;
      expect(await end(teammate, campaignStop)).to.equal(403);
      expect(await end(ada, made.get('account'))).to.equal(403);
      expect(await end(tia, made.get('partner'))).to.equal(403);
      expect(await end(pat, made.get('server'))).to.equal(403);
      expect(await end(oda, made.get('account'))).to.equal(404);
      expect(await end(stan, made.get('server'))).to.equal(204);
      expect(await end(tia, made.get('account'))).to.equal(204);
      expect(await end(pat, made.get('partner'))).to.equal(204);
      expect(await end(ada, campaignStop)).to.equal(403);
      expect(await end(pat, campaignStop)).to.equal(204);
      expect(await end(pat, campaignStop)).to.equal(404);
      const own = Object((await stop(ada, { scope: 'campaign', id: campaign.id })).json).stop.id;
      expect((await stop(ada, { scope: 'campaign', id: campaign.id })).status).to.equal(200);
      expect((await stop(teammate, { scope: 'campaign', id: campaign.id })).status).to.equal(200);
      expect(await end(ada, own)).to.equal(204);
      await stop(ada, { scope: 'campaign', id: campaign.id, reason: 'Lunch' });
      const raised = Object((await stop(pat, { scope: 'campaign', id: campaign.id, reason: 'Legal hold' })).json).stop;
      expect([raised.by.name, raised.reason]).to.deep.equal(['Pat Partner', 'Legal hold']);
      expect(await end(pat, raised.id)).to.equal(204);
      for (const [who, body, status] of [
        [ada, { scope: 'server' }, 403],
        [pat, { scope: 'server' }, 403],
        [ada, { scope: 'partner', id: partner.id }, 404],
        [tia, { scope: 'partner', id: partner.id }, 404],
        [ada, { scope: 'account', id: otherAccount.id }, 404],
        [ada, { scope: 'account' }, 422],
        [stan, { scope: 'server', id: account.id }, 422],
        [ada, { scope: 'planet', id: account.id }, 422],
        [ada, { scope: 'account', id: account.id, reason: 'x'.repeat(limits.name + 1) }, 422],
        [ada, { scope: 'account', id: account.id, reason: '\u200b' }, 422],
        [ada, { scope: 'account', id: account.id, reason: 'Two\nlines' }, 422],
        [ada, { scope: 'account', id: account.id, cancelQueuedCalls: 'yes' }, 422],
        [ada, { scope: 'campaign', id: 'none' }, 404],
      ] as const)
        expect((await stop(who, body)).status, JSON.stringify(body)).to.equal(status);
    });

    it('is acknowledged before all of a long queue is cancelled, and so is revoking a key: the rest follows right away', async () => {
      await dialer.start({ DIALER: 'off' });
      const { account } = dialer.tenants;
      const { id } = await createKey(dialer.core.url, dialer.cookie);
      const cancels: (() => Promise<unknown>)[] = [
        () => stop({ cookie: dialer.cookie }, { scope: 'account', id: account.id, cancelQueuedCalls: true }),
        () => ask('DELETE', `${dialer.core.url}/console/api-keys/${id}?cancelQueuedCalls=true`, { cookie: dialer.cookie }),
      ];
      const { read } = dialer.direct.storage.database;
      const queued = async () => (await read('calls').where({ state: 'queued' }).pluck('contact_id')).length;
      soon.ms = 0;
      for (const [n, cancel] of cancels.entries()) {
        const ids = Array.from({ length: 1_500 }, (_, call) => `${n}-${call}`);
        await insertCalls(dialer.direct, dialer.tenants, ids, { api_key_id: id });
        await cancel();
        await until(async () => (await queued()) === 0);
      }
    });
  });
});

describe('paces and contact limits', () => {
  onEachDatabase((kind) => {
    const dialer = dialerForEach(kind);
    const send = (method: 'GET' | 'PUT', path: string, cookie: string, body?: object) =>
      ask(method, `${dialer.core.url}/console/${path}`, { cookie, ...(body ? { body } : {}) });

    it('are set by partner users, and shown with what applies', async () => {
      await dialer.start({ DIALER: 'off' });
      const { account, campaign, partner } = dialer.tenants;
      const pat = await signIn(dialer.core.url, 'pat@example.com');
      const pace = `pace?scope=campaign&id=${campaign.id}`;
      const none = (await send('GET', pace, dialer.cookie)).json;
      expect(none).to.deep.include({ perSecond: null, liveCalls: null });
      expect((await send('PUT', pace, pat, { perSecond: 0.5, liveCalls: 20 })).json).to.deep.include({ perSecond: 0.5, liveCalls: 20 });
      expect((await send('GET', pace, dialer.cookie)).json).to.deep.include({ perSecond: 0.5, liveCalls: 20 });
      const limits = { calls: 3, days: 1, minutesBetween: 240 };
      expect((await send('PUT', `contact-limits?scope=partner&id=${partner.id}`, pat, { limits })).status).to.equal(200);
      expect((await send('GET', `contact-limits?scope=account&id=${account.id}`, dialer.cookie)).json).to.deep.equal({
        limits: null,
        scope: { kind: 'account', id: account.id, name: account.name },
        version: Object((await send('GET', `contact-limits?scope=campaign&id=${campaign.id}`, pat)).json).version,
        effective: { from: { kind: 'partner', id: partner.id, name: partner.name }, limits },
      });
      for (const [path, body, status] of [
        [pace, { perSecond: 1_001, liveCalls: null }, 422],
        [pace, { perSecond: '1', liveCalls: null }, 422],
        [pace, { perSecond: 0.09, liveCalls: null }, 422],
        [pace, { perSecond: null, liveCalls: 0 }, 422],
        [pace, { perSecond: null, liveCalls: 1.5 }, 422],
        [pace, { perSecond: null, liveCalls: '4' }, 422],
        [pace, { perSecond: null, liveCalls: 100_001 }, 422],
        [pace, { perSecond: null }, 422],
        [`pace?scope=partner&id=${partner.id}`, { perSecond: 1, liveCalls: null }, 400],
        [`contact-limits?scope=account&id=${account.id}`, { limits: { calls: 3, days: 31, minutesBetween: 0 } }, 422],
        [`contact-limits?scope=account&id=${account.id}`, { limits: { calls: 3, days: 1 } }, 422],
        [`contact-limits?scope=account&id=${account.id}`, { limits: { days: 1, minutesBetween: 0 } }, 422],
        [`contact-limits?scope=account&id=${account.id}`, { limits: { calls: 3, minutesBetween: 0 } }, 422],
        [`contact-limits?scope=account&id=${account.id}`, { limits: { calls: 0, days: 0, minutesBetween: -1 } }, 422],
        [`contact-limits?scope=account&id=${account.id}`, { limits: { calls: 3, days: 1, minutesBetween: 43_201 } }, 422],
        [`contact-limits?scope=account&id=${account.id}`, { limits: { calls: '3', days: 1, minutesBetween: 0 } }, 422],
        [`contact-limits?scope=account&id=${account.id}`, {}, 422],
        [`pace?scope=account&id=${dialer.tenants.otherAccount.id}`, { perSecond: 1, liveCalls: null }, 404],
        [`contact-limits?scope=account&id=${account.id}`, { limits: { calls: 101, days: 1, minutesBetween: 0 } }, 422],
        [`contact-limits?scope=account&id=${dialer.tenants.otherAccount.id}`, { limits: null }, 404],
      ] as const)
        expect((await send('PUT', path, pat, body)).status, JSON.stringify(body)).to.equal(status);
      expect((await send('PUT', pace, dialer.cookie, { perSecond: 1, liveCalls: null })).status).to.equal(403);
      const raw = { cookie: pat, raw: '{"perSecond":NaN,"liveCalls":null}', headers: { 'Content-Type': 'application/json' } };
      expect((await ask('PUT', `${dialer.core.url}/console/${pace}`, raw)).status).to.equal(400);
      const tooLarge = { ...raw, raw: '{"perSecond":1e400,"liveCalls":"4"}' };
      expect((await ask('PUT', `${dialer.core.url}/console/${pace}`, tooLarge)).json).to.deep.include({
        errors: [
          { path: 'perSecond', message: 'Must be a number from 0.1 to 1000, or null.' },
          { path: 'liveCalls', message: 'Must be a whole number from 1 to 100000, or null.' },
        ],
      });
      expect((await send('GET', pace, pat)).json).to.deep.include({ perSecond: 0.5, liveCalls: 20 });
    });

    it('are, like hours and allowed numbers, not changed by someone who saw older ones, but a repeated change is accepted', async () => {
      await dialer.start({ DIALER: 'off' });
      const pat = await signIn(dialer.core.url, 'pat@example.com');
      const { account } = dialer.tenants;
      const limits = (calls: number) => ({ limits: { calls, days: 1, minutesBetween: 0 } });
      for (const [path, first, second] of [
        ['pace', { perSecond: 1, liveCalls: null }, { perSecond: null, liveCalls: 4 }],
        ['contact-limits', limits(1), limits(2)],
        ['numbers', { countries: ['DE'], kinds: null }, { countries: null, kinds: ['satellite'] }],
        ['calling-hours', { rules: [daily('09:00', '18:00')] }, { rules: [daily('10:00', '20:00')] }],
      ] as const) {
        const at = `${path}?scope=account&id=${account.id}`;
        const { version } = Object((await send('GET', at, pat)).json);
        const change = async (body: object) => (await send('PUT', at, pat, { ...body, version })).status;
        expect([await change(first), await change(first), await change(second)], path).to.deep.equal([200, 200, 409]);
        expect(Object((await send('GET', at, pat)).json)).to.deep.include(first);
        const saved = await send('PUT', at, pat, second);
        expect([saved.status, Object(saved.json).version]).to.deep.equal([200, Object((await send('GET', at, pat)).json).version]);
      }
    });

    /** Limits a scope to one call to each number, and calls one. @returns how to place more calls to it */
    async function callOnce(scope: 'account' | 'partner') {
      const pat = await signIn(dialer.core.url, 'pat@example.com');
      const limits = { calls: 1, days: 2, minutesBetween: 0 };
      const path = `contact-limits?scope=${scope}&id=${dialer.tenants[scope].id}`;
      expect((await send('PUT', path, pat, { limits })).status).to.equal(200);
      const contact = { phone: somePhone() };
      const place = async (more: object = {}): Promise<string> => Object((await dialer.place({ contact, ...more })).json).contactId;
      const first = await place();
      await until(async () => (await dialer.call(first))['dialed_at'] !== null);
      return { pat, contact, place, first };
    }

    it('show when the number of a call that they hold was last called, and whether it lapses first', async () => {
      await dialer.start();
      const { account, campaign } = dialer.tenants;
      const { pat, contact, place, first } = await callOnce('account');
      const [held, late] = [await place(), await place({ notAfter: new Date(Date.now() + 3_600_000).toISOString() })];
      await until(async () => (await Promise.all([held, late].map(dialer.call))).every((call) => call['held_for'] === 'contact-limit'));
      const { calls } = Object((await send('GET', 'calls', dialer.cookie)).json);
      const lastCalledAt = Object(calls).at(-1).dialedAt;
      expect(Object(calls).map((call: CallView) => [call.contactId, call.heldFor, call.lapses, call.lastCalledAt])).to.deep.equal([
        [late, 'contact-limit', true, lastCalledAt],
        [held, 'contact-limit', undefined, lastCalledAt],
        [first, null, undefined, undefined],
      ]);
      const details = async (id: string) => Object((await send('GET', `campaigns/${campaign.id}/calls/${id}`, dialer.cookie)).json);
      const shown = await details(held);
      expect(shown.call).to.include({ contactId: held, lastCalledAt });
      expect([shown.nextAttemptAt, (await details(late)).nextAttemptAt]).to.deep.equal([shown.call.heldUntil, null]);
      const heldUntil = async (id: string) => {
        const { text } = await send('GET', 'calls.csv', dialer.cookie);
        return text.split('\n').flatMap((row) => (row.includes(id) ? row.split(',')[10] : []));
      };
      expect([await heldUntil(held), await heldUntil(late)]).to.deep.equal([[`"${shown.call.heldUntil}"`], ['""']]);
      const body = { phone: contact.phone, campaignId: campaign.id };
      const check = async () => (await ask('POST', `${dialer.core.url}/console/numbers/check`, { cookie: dialer.cookie, body })).json;
      const limitsFrom = { kind: 'account', id: account.id, name: account.name };
      expect(await check()).to.deep.include({ reasons: ['contact-limit'], limitsFrom, lastCalledAt });
      await send('PUT', `contact-limits?scope=account&id=${account.id}`, pat, { limits: null });
      expect(await check()).to.not.have.any.keys('limitsFrom', 'lastCalledAt');
    });

    it("don't tell a user of one account when the partner's other accounts called a number, although its limits count their calls", async () => {
      await dialer.start();
      const { campaign } = dialer.tenants;
      const { pat, contact, place } = await callOnce('partner');
      const held = await place();
      await until(async () => (await dialer.call(held))['held_for'] === 'contact-limit');
      const body = { phone: contact.phone, campaignId: campaign.id };
      const tell = async (cookie: string) => [
        Object((await send('GET', 'calls', cookie)).json).calls[0],
        Object((await send('GET', `campaigns/${campaign.id}/calls/${held}`, cookie)).json).call,
        (await ask('POST', `${dialer.core.url}/console/numbers/check`, { cookie, body })).json,
      ];
      for (const told of await tell(pat)) expect(told).to.have.property('lastCalledAt');
      for (const told of await tell(dialer.cookie)) expect(told).to.not.have.property('lastCalledAt');
    });

    it('let a webhook get as many calls as the pace of the server allows', async () => {
      const times: number[] = [];
      await dialer.start({ DIALER_PER_SECOND: '20' }, (_, response) => {
        times.push(performance.now());
        response.writeHead(202).end();
      });
      // On a busy machine, the first hand-off may arrive late.
      const begun = performance.now();
      await Promise.all(Array.from({ length: 12 }, () => dialer.place()));
      await dialer.receiver.until(12);
      expect((times[11] ?? 0) - begun).to.be.greaterThan(450);
    });

    it("show and export no time for a call that a stop or a pace holds, because that isn't known", async () => {
      await dialer.start({ DIALER: 'off' });
      const { campaign } = dialer.tenants;
      const heldUntil = instant(Date.now() + 3_600_000);
      for (const by of ['stop', 'pace'] as const) {
        const held = { due_at: heldUntil, held_until: heldUntil, held_for: by };
        await insertCalls(dialer.direct, dialer.tenants, [by], held);
        const details = (await send('GET', `campaigns/${campaign.id}/calls/${by}`, dialer.cookie)).json;
        expect(details).to.include({ nextAttemptAt: null });
        expect(details).to.have.property('call').that.deep.includes({ heldFor: by, heldUntil: null, heldZone: null });
      }
      const { text } = await send('GET', 'calls.csv', dialer.cookie);
      const rows = text.split('\n').map((row) => row.split(','));
      expect(rows.slice(1, 3).map((row) => [row[1], row[10]])).to.have.deep.members([
        ['"stop"', '""'],
        ['"pace"', '""'],
      ]);
    });
  });
});
