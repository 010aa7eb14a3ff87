import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { apiKeyDetailsSchema } from '#contract/console/api-keys.ts';
import { forgetOldCounts } from '../../core/domain/calls/contacts.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { openCore, type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, readCode } from '../support/http.ts';
import { createKey, type DirectAccess, onDemand, placeCall, signIn, type Tenants } from '../support/tenants.ts';

describe("an API key's details", () => {
  onEachDatabase((kind) => {
    let database: string;
    let core: RunningCore;
    let direct: DirectAccess;
    let tenants: Tenants;
    let clock: FakeClock;
    let cookie: string;

    beforeEach(async () => {
      clock = fakeClock('2026-11-21T09:00:00.000Z');
      ({ database, core, direct, tenants } = await openCore({ kind, clock }));
      cookie = await signIn(core.url, 'ada@example.com');
    });
    // A test may have started another core instead.
    afterEach(async () => {
      await direct.close();
      await core.close();
    });

    const show = (id: string, timeZone = 'Europe/Berlin', as = cookie) =>
      ask('GET', `${core.url}/console/api-keys/${id}?timeZone=${encodeURIComponent(timeZone)}`, { cookie: as });
    const details = async (id: string, timeZone?: string, as?: string) => {
      const { status, json } = await show(id, timeZone, as);
      expect(status, JSON.stringify(json)).to.equal(200);
      return apiKeyDetailsSchema.strict().parse(json);
    };
    const cancel = (key: string, requestId: string) =>
      ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/by-request-id/${requestId}`, { key });
    const place = async (key: string, requestId: string) => {
      const answer = await placeCall(core.url, tenants.campaign.id, key, { requestId, contact: { phone: '+493012345678' } });
      expect(answer.status).to.equal(202);
    };
    /** A core writes its keys' use when it drains. */
    const restart = async () => {
      await core.close();
      core = await startCoreHere(database, { clock });
    };

    it('include every field from the list, and the scope in which the key was created', async () => {
      const { id } = await createKey(core.url, cookie, 'CRM', { kind: 'custom', date: '2027-01-31' });
      const { apiKey, createdIn } = await details(id);
      const listed = (await ask('GET', `${core.url}/console/api-keys`, { cookie })).json;
      expect(listed).to.deep.include({ apiKeys: [apiKey] });
      expect(createdIn).to.deep.equal({ kind: 'account', id: tenants.account.id, name: 'Blue Clinic' });
    });

    it("show the key's owner to a partner user", async () => {
      const { id } = await createKey(core.url, cookie);
      const { apiKey } = await details(id, 'UTC', await signIn(core.url, 'pat@example.com'));
      expect(apiKey.owner).to.deep.equal({ isYou: false, name: 'Ada Account', email: 'ada@example.com' });
    });

    it('show which campaigns the key has access to now, even outside the scope in which it was created', async () => {
      const tia = await signIn(core.url, 'tia@example.com');
      const { id } = await createKey(core.url, tia);
      const { createdIn, reach } = await details(id, 'UTC', tia);
      expect([createdIn.name, reach]).to.deep.equal(['Blue Clinic', { kind: 'partner', id: tenants.partner.id, name: 'Northwind Voice' }]);
    });

    describe('usage counts', () => {
      it('are given per day in the time zone, for 30 days, oldest first', async () => {
        const { id, keyValue } = await createKey(core.url, cookie);
        clock.set('2026-11-19T23:14:00.000Z');
        await place(keyValue, 'first');
        clock.set('2026-11-20T18:20:00.000Z');
        for (const requestId of ['a', 'b', 'c']) await place(keyValue, requestId);
        await cancel(keyValue, 'a');
        clock.set('2026-11-21T09:00:00.000Z');
        await restart();
        // Housekeeping may have run while the clock was two days behind, and ended the session.
        cookie = await signIn(core.url, 'ada@example.com');
        const counts = async (timeZone: string) => {
          const { usage } = await details(id, timeZone);
          expect(usage).to.have.length(30);
          expect([usage[0]?.day, usage[29]?.day]).to.deep.equal(['2026-10-23', '2026-11-21']);
          return usage.filter(({ placed, cancelled }) => placed + cancelled > 0);
        };
        expect(await counts('UTC')).to.deep.equal([
          { day: '2026-11-19', placed: 1, cancelled: 0 },
          { day: '2026-11-20', placed: 3, cancelled: 1 },
        ]);
        expect(await counts('Europe/Berlin')).to.deep.equal([{ day: '2026-11-20', placed: 4, cancelled: 1 }]);
        // 18:15 in UTC is midnight in Kathmandu, where calls at 18:20 UTC belong to the next day.
        expect(await counts('Asia/Kathmandu')).to.deep.equal([
          { day: '2026-11-20', placed: 1, cancelled: 0 },
          { day: '2026-11-21', placed: 3, cancelled: 1 },
        ]);
      });

      it('include each call once, but not repeats, refusals or calls of other keys', async () => {
        const { id, keyValue } = await createKey(core.url, cookie);
        const other = await createKey(core.url, cookie);
        for (let n = 0; n < 3; n++) await place(keyValue, 'same');
        await place(other.keyValue, 'of-another');
        await placeCall(core.url, tenants.otherCampaign.id, keyValue);
        for (let n = 0; n < 3; n++) await cancel(keyValue, 'same');
        await cancel(keyValue, 'none');
        await restart();
        expect((await details(id)).usage.at(-1)).to.deep.equal({ day: '2026-11-21', placed: 1, cancelled: 1 });
      });

      it('cover all cores on a database', async () => {
        const { id, keyValue } = await createKey(core.url, cookie);
        const second = await startCoreHere(database, { clock });
        await place(keyValue, 'here');
        await placeCall(second.url, tenants.campaign.id, keyValue);
        await second.close();
        await restart();
        await place(keyValue, 'later');
        await restart();
        expect((await details(id)).usage.at(-1)).to.include({ placed: 3 });
      });

      it('include today even right after midnight in the given time zone', async () => {
        const { id, keyValue } = await createKey(core.url, cookie);
        clock.set('2026-11-21T10:00:00.000Z');
        await place(keyValue, 'midnight');
        await restart();
        expect((await details(id, 'Pacific/Kiritimati')).usage.at(-1)).to.deep.equal({ day: '2026-11-22', placed: 1, cancelled: 0 });
      });

      it("are deleted once they're too old for a chart in any time zone", async () => {
        const { keyValue } = await createKey(core.url, cookie);
        await place(keyValue, 'old');
        await cancel(keyValue, 'old');
        // Close the core, because a running core would delete the counts as soon as the clock is moved.
        await core.close();
        const kept = async () =>
          Promise.all(
            ['api_key_usage', 'call_counts', 'api_key_addresses'].map(async (table) => (await direct.storage.database.read(table)).length),
          );
        await direct.ports.stores.callList.compactCounts();
        clock.advance({ days: 31 });
        expect(await forgetOldCounts(direct.ports.stores.retention, clock)).to.equal(0);
        expect(await kept()).to.deep.equal([1, 1, 1]);
        clock.advance({ milliseconds: 1 });
        expect(await forgetOldCounts(direct.ports.stores.retention, clock)).to.equal(3);
        expect(await kept()).to.deep.equal([0, 0, 0]);
        core = await startCoreHere(database, { clock });
      });
    });

    it("include the key's own events, newest first", async () => {
      const { id } = await createKey(core.url, cookie, 'CRM');
      await createKey(core.url, cookie, 'Another');
      const { activity } = await details(id);
      expect(activity.map(({ action, subject, actor }) => [action, subject.name, actor?.name])).to.deep.equal([
        ['api-key.created', 'CRM', 'Ada Account'],
      ]);
      const { events } = activitySchema.parse((await ask('GET', `${core.url}/console/activity`, { cookie })).json);
      expect(events).to.deep.include(activity[0]);
    });

    it("aren't found for an invisible, revoked or unknown key", async () => {
      const { id } = await createKey(core.url, cookie);
      const others = await signIn(core.url, 'tom@example.com');
      for (const [gone, as] of [
        [id, others],
        ['no-such-key', cookie],
        ['%00', cookie],
      ] as const) {
        const answer = await show(gone, 'UTC', as);
        expect([answer.status, readCode(answer)]).to.deep.equal([404, 'not-found']);
      }
      await ask('DELETE', `${core.url}/console/api-keys/${id}`, { cookie });
      expect((await show(id)).status).to.equal(404);
    });

    it('use days in UTC by default', async () => {
      const { id } = await createKey(core.url, cookie);
      const answer = await ask('GET', `${core.url}/console/api-keys/${id}`, { cookie });
      expect(answer.json).to.deep.equal((await show(id, 'UTC')).json);
    });

    it('return 400 if the query is invalid', async () => {
      const { id } = await createKey(core.url, cookie);
      for (const query of ['?timeZone=Mars/Olympus', '?timeZone=%2B02:00', '?timeZone=UTC&timeZone=UTC', '?zone=UTC']) {
        const answer = await ask('GET', `${core.url}/console/api-keys/${id}${query}`, { cookie });
        expect([answer.status, readCode(answer)], query).to.deep.equal([400, 'malformed-request']);
      }
    });
  });
});
