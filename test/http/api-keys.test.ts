import { hash } from 'node:crypto';
import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { apiKeyDetailsSchema, apiKeysSchema, createdApiKeySchema, identifiedApiKeySchema } from '#contract/console/api-keys.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { problemSchema } from '#contract/problems.ts';
import { forgetOldCounts } from '../../core/domain/calls/contacts.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore, type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, readCode } from '../support/http.ts';
import { createKey, type DirectAccess, onDemand, placeCall, restoreForEach, signIn, type Tenants } from '../support/tenants.ts';

describe('API keys in the console', () => {
  onEachDatabase((kind) => {
    let database: string;
    let core: RunningCore;
    let direct: DirectAccess;
    let tenants: Tenants;
    const clock = fakeClock();
    let cookie: string;

    before(async () => {
      ({ database, core, direct, tenants } = await openCore({ kind, clock }));
    });
    restoreForEach(() => direct);
    beforeEach(async () => {
      clock.set('2026-11-21T09:00:00.000Z');
      cookie = await signIn(core.url, 'ada@example.com');
    });
    // A test may have started another core instead.
    after(async () => {
      await direct.close();
      await core.close();
    });

    const create = (body: object) => ask('POST', `${core.url}/console/api-keys`, { cookie, body });
    const list = async (as = cookie) =>
      apiKeysSchema.strict().parse((await ask('GET', `${core.url}/console/api-keys`, { cookie: as })).json);
    const revoke = (id: string, query = '') => ask('DELETE', `${core.url}/console/api-keys/${id}${query}`, { cookie });

    describe('creating a key', () => {
      it("returns 201 with the key's record and, this one time only, its value", async () => {
        const answer = await create({ name: '  CRM  ', expiration: { kind: 'custom', date: '2027-01-31' }, timeZone: 'Europe/Berlin' });
        expect(answer.status).to.equal(201);
        const { apiKey, keyValue } = createdApiKeySchema.strict().parse(answer.json);
        expect(isKeyValue(keyValue)).to.equal(true);
        expect({ ...apiKey, id: '' }).to.deep.equal({
          id: '',
          name: 'CRM',
          createdAt: '2026-11-21T09:00:00.000Z',
          lastUsedAt: null,
          expiresAt: '2027-01-31T22:59:59.999Z',
          expiryTimeZone: 'Europe/Berlin',
          timeZone: 'Europe/Berlin',
          expired: false,
          ...{ addresses: null, callsPerDay: null, limitsVersion: null },
        });
        expect(answer.headers).to.include({ 'cache-control': 'no-store' });
        expect(JSON.stringify(await list())).not.to.contain('svc_sk_live_');
      });

      it('returns 422 for a date that is not in the future, and creates nothing', async () => {
        const answer = await create({ name: 'x', expiration: { kind: 'custom', date: '2026-11-21' }, timeZone: 'Europe/Berlin' });
        expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
        expect(problemSchema.parse(answer.json).errors?.map((error) => error.path)).to.deep.equal(['expiration.date']);
        expect((await list()).total).to.equal(0);
      });

      it('stores only the SHA-256 of the key value', async () => {
        const { keyValue } = await createKey(core.url, cookie);
        const rows = JSON.stringify(await direct.storage.database.read('api_keys'));
        expect(rows).to.contain(hash('sha256', keyValue, 'hex'));
        expect(rows).not.to.contain(keyValue.slice(12, 30));
      });
    });

    it('are refused after the last millisecond of their last day, but stay listed as expired', async () => {
      const { keyValue } = await createKey(core.url, cookie, 'Short', { kind: 'custom', date: '2026-11-22' });
      clock.set('2026-11-22T22:59:59.999Z');
      expect((await placeCall(core.url, tenants.campaign.id, keyValue)).status).to.equal(202);
      expect((await list(await signIn(core.url, 'ada@example.com'))).apiKeys[0]?.expired).to.equal(false);
      clock.set('2026-11-22T23:00:00.000Z');
      expect((await placeCall(core.url, tenants.campaign.id, keyValue)).status).to.equal(401);
      const { apiKeys } = await list(await signIn(core.url, 'ada@example.com'));
      expect(apiKeys.map(({ name, expired }) => [name, expired])).to.deep.equal([['Short', true]]);
    });

    describe('revoking a key', () => {
      it('returns 404 the second time, also to one of two concurrent requests, and for an unknown ID', async () => {
        const { id } = await createKey(core.url, cookie);
        const answers = await Promise.all([revoke(id), revoke(id)]);
        expect(answers.map(({ status }) => status).sort()).to.deep.equal([204, 404]);
        for (const gone of [id, 'no-such-key', '%00', 'x'.repeat(100)]) {
          const answer = await revoke(gone);
          expect([answer.status, readCode(answer)]).to.deep.equal([404, 'not-found']);
        }
      });

      it("keeps the key's name for the audit trail, but not its digest", async () => {
        const { id, keyValue } = await createKey(core.url, cookie, 'Old CRM');
        await revoke(id);
        const rows: object[] = await direct.storage.database.read('revoked_api_keys');
        expect(rows[0]).to.include({ id, name: 'Old CRM', creator_name: 'Ada Account' });
        expect(JSON.stringify(rows)).not.to.contain(hash('sha256', keyValue, 'hex'));
      });

      it('records an audit event, as creating a key does', async () => {
        const { id } = await createKey(core.url, cookie, 'CRM');
        await revoke(id);
        const events: object[] = await direct.storage.database.read('audit_events').where({ subject_id: id }).orderBy('action');
        expect(events).to.have.length(2);
        const common = { actor_id: tenants.users.account.id, subject_name: 'CRM', account_id: tenants.account.id, address: '127.0.0.1' };
        expect(events[0]).to.include({ action: 'api-key.created', ...common });
        expect(events[1]).to.include({ action: 'api-key.revoked', ...common });
      });
    });

    it('identifying a key finds a visible one by the SHA-256 of its value, and returns null otherwise', async () => {
      const identify = async (sha256: string, as = cookie) =>
        ask('POST', `${core.url}/console/api-keys/identify`, { cookie: as, body: { sha256 } });
      const { id, keyValue } = await createKey(core.url, cookie);
      const digest = hash('sha256', keyValue, 'hex');
      for (const spelling of [digest, digest.toUpperCase()])
        expect(identifiedApiKeySchema.parse((await identify(spelling)).json).apiKey?.id).to.equal(id);
      expect((await identify(digest, await signIn(core.url, 'tom@example.com'))).json).to.deep.equal({ apiKey: null });
      expect((await identify('0'.repeat(64))).json).to.deep.equal({ apiKey: null });
    });

    describe('details of a key', () => {
      const show = (id: string, timeZone = 'Europe/Berlin', as = cookie) =>
        ask('GET', `${core.url}/console/api-keys/${id}?timeZone=${encodeURIComponent(timeZone)}`, { cookie: as });
      const details = async (...asked: Parameters<typeof show>) => apiKeyDetailsSchema.strict().parse((await show(...asked)).json);
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

      it("include every field from the list, and show the key's owner to a partner user", async () => {
        const { id } = await createKey(core.url, cookie, 'CRM', { kind: 'custom', date: '2027-01-31' });
        const { apiKey } = await details(id);
        const listed = (await ask('GET', `${core.url}/console/api-keys`, { cookie })).json;
        expect(listed).to.deep.include({ apiKeys: [apiKey] });
        const ofPartner = await details(id, 'UTC', await signIn(core.url, 'pat@example.com'));
        expect(ofPartner.apiKey.owner).to.deep.equal({ isYou: false, name: 'Ada Account', email: 'ada@example.com' });
      });

      describe('usage counts', () => {
        it('are given per day in the time zone, for 30 days, oldest first', async () => {
          const { id, keyValue } = await createKey(core.url, cookie);
          clock.set('2026-11-19T23:14:00.000Z');
          await place(keyValue, 'first');
          clock.set('2026-11-20T18:20:00.000Z');
          for (const requestId of ['a', 'b', 'c']) await place(keyValue, requestId);
          await cancel(keyValue, 'a');
          clock.set('2026-11-21T10:00:00.000Z');
          await restart();
          // Housekeeping may have run while the clock was two days behind, and ended the session.
          cookie = await signIn(core.url, 'ada@example.com');
          const counts = async (timeZone: string, first = '2026-10-23', today = '2026-11-21') => {
            const { usage } = await details(id, timeZone);
            expect(usage).to.have.length(30);
            expect([usage[0]?.day, usage[29]?.day]).to.deep.equal([first, today]);
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
          // It's midnight in Kiritimati now.
          expect(await counts('Pacific/Kiritimati', '2026-10-24', '2026-11-22')).to.deep.equal([
            { day: '2026-11-20', placed: 1, cancelled: 0 },
            { day: '2026-11-21', placed: 3, cancelled: 1 },
          ]);
        });

        it("are deleted once they're too old for a chart in any time zone", async () => {
          const { keyValue } = await createKey(core.url, cookie);
          await place(keyValue, 'old');
          await cancel(keyValue, 'old');
          // Close the core, because a running core would delete the counts as soon as the clock is moved.
          await core.close();
          const kept = async () =>
            Promise.all(
              ['api_key_usage', 'call_counts', 'api_key_addresses'].map(
                async (table) => (await direct.storage.database.read(table)).length,
              ),
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

      it("aren't found for a revoked or impossible key", async () => {
        const { id } = await createKey(core.url, cookie);
        await revoke(id);
        for (const gone of [id, '%00']) {
          const answer = await show(gone);
          expect([answer.status, readCode(answer)]).to.deep.equal([404, 'not-found']);
        }
      });

      it('use days in UTC by default', async () => {
        const { id } = await createKey(core.url, cookie);
        const answer = await ask('GET', `${core.url}/console/api-keys/${id}`, { cookie });
        expect(answer.json).to.deep.equal((await show(id, 'UTC')).json);
      });
    });
  });
});
