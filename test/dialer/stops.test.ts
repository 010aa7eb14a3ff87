import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { CallView } from '#contract/console/calls.ts';
import { tenancyHeader } from '#contract/console/session.ts';
import type { StopView } from '#contract/protection/dialing.ts';
import { instant } from '../../core/domain/instant.ts';
import { soon } from '../../core/storage/queue/queue.ts';
import { fakeClock } from '../support/clock.ts';
import { onEachDatabase } from '../support/databases.ts';
import { daily } from '../support/hours-rules.ts';
import { ask } from '../support/http.ts';
import { dialerOnce } from '../support/provider.ts';
import { createKey, insertCalls, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('stopping', () => {
  onEachDatabase((kind) => {
    const dialer = dialerOnce(kind, { environment: { DIALER_CONCURRENCY: '3' } });
    const off = dialerOnce(kind, { environment: { DIALER: 'off' } });
    type Who = { cookie: string; headers?: Record<string, string> };
    const stops = ({ core } = off) => `${core.url}/console/stops`;
    const stop = ({ cookie, headers = {} }: Who, body: object, of = off) => ask('POST', stops(of), { cookie, headers, body });
    const list = async ({ cookie }: Who, of = off): Promise<StopView[]> => Object((await ask('GET', stops(of), { cookie })).json).stops;
    const resume = async ({ cookie, headers = {} }: Who, { id }: StopView) =>
      (await ask('DELETE', `${stops()}/${id}`, { cookie, headers })).status;
    const stopped = async (who: Who, body: object): Promise<StopView> => Object((await stop(who, body)).json).stop;
    const as = async (name: string): Promise<Who> => ({ cookie: await signIn(off.core.url, `${name}@example.com`) });
    const asStaff = async () => ({ ...(await as('stan')), headers: { [tenancyHeader]: `partner/${off.tenants.partner.id}` } });
    const ofCampaign = () => ({ scope: 'campaign', id: off.tenants.campaign.id });
    afterEach(() => {
      soon.ms = 700;
    });

    it('responds only when the hand-offs under way have ended, and no request begins after its response', async () => {
      const open: ServerResponse[] = [];
      dialer.answerWith((_, response) => open.push(response));
      for (let n = 0; n < 6; n++) await dialer.place();
      await dialer.receiver.until(3);
      let isOver = false;
      const stopping = stop(dialer, { scope: 'account', id: dialer.tenants.account.id, reason: 'Wrong recording' }, dialer).finally(() => {
        isOver = true;
      });
      await until(async () => (await list(dialer, dialer)).length === 1);
      expect(isOver).to.equal(false);
      for (const response of open.splice(0)) response.writeHead(202).end();
      const answer = await stopping;
      expect(answer.status, answer.text).to.equal(201);
      expect(answer.json).to.deep.include({ queuedCalls: 3, withProvider: 3 });
      const started = dialer.receiver.received.length;
      expect((await dialer.place()).status).to.equal(202);
      const metrics = await ask('GET', `${dialer.core.managementUrl}/metrics`);
      expect(metrics.text).to.contain('\ncallkey_dialer_waiting{why="stop"} 4\n');
      expect(metrics.text).to.contain('\ncallkey_dialing_stops{scope="account"} 1\n');
      expect(metrics.text).to.contain('\ncallkey_dialing_stops{scope="campaign"} 0\n');
      expect([started, dialer.receiver.received.length]).to.deep.equal([3, 3]);
      const { id } = Object(answer.json).stop;
      expect((await ask('DELETE', `${stops(dialer)}/${id}`, { cookie: dialer.cookie })).status).to.equal(204);
      await dialer.receiver.until(6);
      for (const response of open) response.writeHead(202).end();
      await dialer.receiver.until(7);
      for (const response of open) if (!response.writableEnded) response.writeHead(202).end();
    });

    it('stops something else right away while the same user waits for the provider', async () => {
      const open: ServerResponse[] = [];
      dialer.answerWith((_, response) => open.push(response));
      await dialer.place();
      await dialer.receiver.until(1);
      const first = stop(dialer, { scope: 'campaign', id: dialer.tenants.campaign.id }, dialer);
      await until(async () => (await list(dialer, dialer)).length === 1);
      const second = stop(dialer, { scope: 'account', id: dialer.tenants.account.id }, dialer);
      await until(async () => (await list(dialer, dialer)).length === 2);
      for (const response of open) response.writeHead(202).end();
      for (const { status, text } of await Promise.all([first, second])) expect(status, text).to.equal(201);
    });

    it('is shown to everyone whom it stops, with who stopped it, and why, and whether they may resume', async () => {
      const { account, partner, campaign, users } = off.tenants;
      const [ada, pat, stan] = [await as('ada'), await as('pat'), await asStaff()];
      const first = await stop(ada, { ...ofCampaign(), reason: 'Lunch' });
      const { id, at, ...shown } = Object(first.json).stop;
      expect([first.status, shown]).to.deep.equal([
        201,
        {
          ...{ scope: 'campaign', target: { id: campaign.id, name: campaign.name }, reason: 'Lunch', mayResume: true },
          by: { id: users.account.id, name: 'Ada Account' },
        },
      ]);
      expect(await list(await as('tom'))).to.deep.equal([{ id, at, ...shown, mayResume: false }]);
      await stop(pat, { scope: 'account', id: account.id });
      await stop(pat, { scope: 'partner', id: partner.id });
      await stop(stan, { scope: 'server' });
      expect((await list(ada)).map(({ scope }) => scope)).to.deep.equal(['server', 'partner', 'account', 'campaign']);
      expect((await list(await as('oda'))).map(({ scope }) => scope)).to.deep.equal(['server']);
    });

    it("is resumed only by those who may, and isn't found outside of its scope", async () => {
      const { account, partner } = off.tenants;
      const [ada, tom, pat] = [await as('ada'), await as('tom'), await as('pat')];
      const [tia, oda, stan] = [await as('tia'), await as('oda'), await asStaff()];
      const ofAda = await stopped(ada, ofCampaign());
      const ofAccount = await stopped(pat, { scope: 'account', id: account.id });
      const ofPartner = await stopped(pat, { scope: 'partner', id: partner.id });
      const ofServer = await stopped(stan, { scope: 'server' });
      for (const [who, which, status] of [
        [tom, ofAda, 403],
        [ada, ofAccount, 403],
        [tia, ofPartner, 403],
        [pat, ofServer, 403],
        [oda, ofAccount, 404],
        [stan, ofServer, 204],
        [tia, ofAccount, 204],
        [pat, ofPartner, 204],
        [ada, ofAda, 204],
        [ada, ofAda, 404],
      ] as const)
        expect(await resume(who, which), `${which.scope} ${status}`).to.equal(status);
    });

    it('can be repeated, but only by someone of a higher type so that the first can no longer resume, with a reason of their own', async () => {
      const [ada, tom, pat] = [await as('ada'), await as('tom'), await as('pat')];
      const own = await stopped(ada, { ...ofCampaign(), reason: 'Lunch' });
      for (const who of [ada, tom]) expect((await stop(who, ofCampaign())).status).to.equal(200);
      expect(await resume(ada, own)).to.equal(204);
      const first = await stopped(ada, { ...ofCampaign(), reason: 'Lunch' });
      const again = await stop(pat, ofCampaign());
      expect([again.status, Object(again.json).stop]).to.deep.equal([200, first]);
      expect([await resume(ada, first), await resume(pat, first)]).to.deep.equal([403, 204]);
      await stop(ada, { ...ofCampaign(), reason: 'Lunch' });
      const raised = await stopped(pat, { ...ofCampaign(), reason: 'Legal hold' });
      expect([raised.by?.name, raised.reason]).to.deep.equal(['Pat Partner', 'Legal hold']);
    });

    it('is refused outside of what a user may stop, and for invalid input', async () => {
      const { account, partner, otherAccount } = off.tenants;
      const [ada, pat, tia] = [await as('ada'), await as('pat'), await as('tia')];
      for (const [who, body, status] of [
        [ada, { scope: 'server' }, 403],
        [pat, { scope: 'server' }, 403],
        [ada, { scope: 'partner', id: partner.id }, 404],
        [tia, { scope: 'partner', id: partner.id }, 404],
        [ada, { scope: 'account', id: otherAccount.id }, 404],
        [ada, { scope: 'campaign', id: 'none' }, 404],
        [ada, { scope: 'planet', id: account.id }, 422],
      ] as const)
        expect((await stop(who, body)).status, JSON.stringify(body)).to.equal(status);
      expect(await list(await asStaff())).to.deep.equal([]);
    });

    it('is acknowledged before all of a long queue is cancelled, and so is revoking a key: the rest follows right away', async () => {
      const { account } = off.tenants;
      const { id } = await createKey(off.core.url, off.cookie);
      const cancels: (() => Promise<unknown>)[] = [
        () => stop(off, { scope: 'account', id: account.id, cancelQueuedCalls: true }),
        () => ask('DELETE', `${off.core.url}/console/api-keys/${id}?cancelQueuedCalls=true`, { cookie: off.cookie }),
      ];
      const { read } = off.direct.storage.database;
      const queued = async () => (await read('calls').where({ state: 'queued' }).pluck('contact_id')).length;
      soon.ms = 0;
      for (const [n, cancel] of cancels.entries()) {
        const ids = Array.from({ length: 1_500 }, (_, call) => `${n}-${call}`);
        await insertCalls(off.direct, off.tenants, ids, { api_key_id: id });
        await cancel();
        await until(async () => (await queued()) === 0);
      }
    });
  });
});

describe('paces and contact limits', () => {
  onEachDatabase((kind) => {
    const dialer = dialerOnce(kind);
    const send = (method: 'GET' | 'PUT', path: string, cookie: string, body?: object) =>
      ask(method, `${dialer.core.url}/console/${path}`, { cookie, ...(body ? { body } : {}) });
    const signInAsPat = () => signIn(dialer.core.url, 'pat@example.com');

    it('are set by partner users, and shown to account users with what applies', async () => {
      const { account, campaign, partner } = dialer.tenants;
      const pat = await signInAsPat();
      const pace = `pace?scope=campaign&id=${campaign.id}`;
      expect((await send('GET', pace, dialer.cookie)).json).to.deep.include({ perSecond: null, liveCalls: null });
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
    });

    it('are not changed by account users, outside of what a partner user may change, or with invalid input', async () => {
      const { account, campaign, otherAccount, partner } = dialer.tenants;
      const pat = await signInAsPat();
      const pace = { perSecond: 1, liveCalls: null };
      for (const [cookie, path, body, status] of [
        [dialer.cookie, `pace?scope=campaign&id=${campaign.id}`, pace, 403],
        [dialer.cookie, `contact-limits?scope=account&id=${account.id}`, { limits: null }, 403],
        [pat, `pace?scope=account&id=${otherAccount.id}`, pace, 404],
        [pat, `contact-limits?scope=account&id=${otherAccount.id}`, { limits: null }, 404],
        [pat, `pace?scope=partner&id=${partner.id}`, pace, 400],
        [pat, `pace?scope=campaign&id=${campaign.id}`, { perSecond: 1 }, 422],
        [pat, `contact-limits?scope=account&id=${account.id}`, {}, 422],
      ] as const)
        expect((await send('PUT', path, cookie, body)).status, path).to.equal(status);
      const path = `pace?scope=campaign&id=${campaign.id}`;
      const asText = (raw: string) => ask('PUT', `${dialer.core.url}/console/${path}`, { cookie: pat, raw });
      expect((await asText('{"perSecond":NaN,"liveCalls":null}')).status).to.equal(400);
      expect((await asText('{"perSecond":1e400,"liveCalls":"4"}')).json).to.deep.include({
        errors: [
          { path: 'perSecond', message: 'Must be a number from 0.1 to 1000, or null.' },
          { path: 'liveCalls', message: 'Must be a whole number from 1 to 100000, or null.' },
        ],
      });
      expect((await send('GET', path, pat)).json).to.deep.include({ perSecond: null, liveCalls: null });
    });

    it('are, like hours and allowed numbers, not changed by someone who saw older ones, but a repeated change is accepted', async () => {
      const pat = await signInAsPat();
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
      const pat = await signInAsPat();
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

    it("show and export no time for a call that a stop or a pace holds, because that isn't known", async () => {
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

describe('the pace of the server', () => {
  const clock = fakeClock();
  const dialer = dialerOnce('sqlite', { clock, environment: { DIALER_PER_SECOND: '0.1' } });

  it('holds the next call until its time', async () => {
    for (let n = 0; n < 2; n++) await dialer.place();
    await dialer.receiver.until(1);
    const metrics = async () => (await ask('GET', `${dialer.core.managementUrl}/metrics`)).text;
    await until(async () => (await metrics()).includes('\ncallkey_dialer_waiting{why="pace"} 1\n'));
    expect(dialer.receiver.received).to.have.length(1);
    clock.advance({ seconds: 11 });
    await dialer.receiver.until(2);
  });
});
