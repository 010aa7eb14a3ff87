import { expect } from 'chai';
import { z } from 'zod';
import { activityFacetsSchema } from '#contract/console/activity.ts';
import { apiKeysSchema } from '#contract/console/api-keys.ts';
import { callsSchema } from '#contract/console/calls.ts';
import { namedSchema } from '#contract/console/common.ts';
import { sessionSchema, tenancyHeader } from '#contract/console/session.ts';
import { toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { importAll, importFileSchema } from '../../core/domain/directory/import.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { everyone, sees, tenancySuite } from '../support/tenancy-suite.ts';
import { createKey, password, placeCall, signIn, signInFirst } from '../support/tenants.ts';

describe('under the tenancy rules,', () => {
  onEachDatabase((kind) => {
    const at = tenancySuite(kind);
    const { as, cookies } = at;

    for (const viewer of [...everyone, 'staff'] as const) {
      it(`${viewer} manages exactly the partners, accounts and campaigns in their scope`, async () => {
        const isStaff = viewer.startsWith('staff');
        const owned = { partner: 'partner', otherPartner: 'otherPartner' }[String(viewer)];
        const askStatus = async (method: string, path: string, body?: object) =>
          (await ask(method, `${at.core.url}/console/directory/${path}`, { ...as(viewer), ...(body ? { body } : {}) })).status;

        const listed: string[][] = [];
        for (const list of ['partners', 'accounts', 'campaigns'] as const) {
          const { status, json } = await ask('GET', `${at.core.url}/console/directory/${list}`, as(viewer));
          const entries = status === 200 ? z.array(namedSchema).parse(json[list]) : [{ id: String(status) }];
          listed.push(entries.map(({ id }) => id));
        }
        const { partner, otherPartner, account, siblingAccount, otherAccount, campaign, siblingCampaign, otherCampaign } = at.tenants;
        const toIds = (...things: { id: string }[]) => things.map(({ id }) => id);
        const expected = {
          staff: [
            toIds(partner, otherPartner),
            toIds(account, siblingAccount, otherAccount),
            toIds(campaign, siblingCampaign, otherCampaign),
          ],
          partner: [['403'], toIds(account, siblingAccount), toIds(campaign, siblingCampaign)],
          otherPartner: [['403'], toIds(otherAccount), toIds(otherCampaign)],
          none: [['403'], ['403'], ['403']],
        }[isStaff ? 'staff' : (owned ?? 'none')];
        expect(listed).to.deep.equal(expected);

        const refused = isStaff || owned ? 422 : 403;
        for (const [own, ofPartner, ofAccount, ofCampaign] of [
          ['partner', partner, account, campaign],
          ['otherPartner', otherPartner, otherAccount, otherCampaign],
        ] as const) {
          const mayChange = isStaff || owned === own;
          const counted = async (path: string) => (await ask('GET', `${at.core.url}/console/directory/${path}`, as(viewer))).text;
          const filtered = `${await counted(`accounts?partner=${ofPartner.id}`)} ${await counted(`campaigns?account=${ofAccount.id}`)}`;
          expect([filtered.includes(ofAccount.id), filtered.includes(ofCampaign.id)]).to.deep.equal([mayChange, mayChange]);
          const missing = owned ? 404 : 403;
          expect([
            await askStatus('PATCH', `partners/${ofPartner.id}`, { name: ofPartner.name }),
            await askStatus('PATCH', `accounts/${ofAccount.id}`, { name: ofAccount.name }),
            await askStatus('PATCH', `campaigns/${ofCampaign.id}`, { name: ofCampaign.name }),
          ]).to.deep.equal([isStaff ? 200 : 403, mayChange ? 200 : missing, mayChange ? 200 : missing]);
          if (!mayChange) {
            expect([
              await askStatus('POST', 'accounts', { name: 'Theirs', partnerId: ofPartner.id }),
              await askStatus('POST', 'campaigns', { name: 'Theirs', accountId: ofAccount.id }),
            ]).to.deep.equal([refused, refused]);
          }
        }
        if (!isStaff) expect(await askStatus('POST', 'partners', { name: 'Theirs' })).to.equal(403);
      });
    }

    describe('a staff request that names its tenancy', () => {
      const toTenancy = (place: 'account' | 'partner' | 'otherAccount' | 'otherPartner') =>
        `${place.toLowerCase().includes('account') ? 'account' : 'partner'}/${at.tenants[place].id}`;
      const inTenancy = (who: string, tenancy: string | string[]) => ({ ...as(who), headers: { [tenancyHeader]: tenancy } });
      const namesIn = async (who: string, tenancy: string) => {
        const answer = await ask('GET', `${at.core.url}/console/api-keys`, inTenancy(who, tenancy));
        return apiKeysSchema
          .parse(answer.json)
          .apiKeys.map(({ name }) => name)
          .sort();
      };

      // Three sessions of the same staff user, who has selected an account, a partner or nothing there.
      for (const session of ['staff in account', 'staff in partner', 'staff'] as const) {
        it(`applies only to that tenancy, whatever the session of ${session} has selected`, async () => {
          expect(await namesIn(session, toTenancy('account'))).to.deep.equal([...sees['staff in account']].sort());
          expect(await namesIn(session, toTenancy('partner'))).to.deep.equal([...sees['staff in partner']].sort());
          expect(await namesIn(session, toTenancy('otherAccount'))).to.deep.equal(['other']);
          const { json } = await ask('GET', `${at.core.url}/console/session`, inTenancy(session, toTenancy('otherPartner')));
          expect(sessionSchema.parse(json).tenancy?.name).to.equal(at.tenants.otherPartner.name);
          const calls = `${at.core.url}/console/campaigns/${at.tenants.otherCampaign.id}/calls`;
          expect((await ask('GET', calls, inTenancy(session, toTenancy('otherAccount')))).status).to.equal(200);
          expect((await ask('GET', calls, inTenancy(session, toTenancy('account')))).status).to.equal(404);
          for (const [tenancy, place] of [
            ['otherAccount', 'otherCampaign'],
            ['account', 'campaign'],
          ] as const) {
            const all = await ask('GET', `${at.core.url}/console/calls`, inTenancy(session, toTenancy(tenancy)));
            const campaignIds = callsSchema.parse(all.json).calls.map(({ campaign }) => campaign?.id);
            expect([...new Set(campaignIds)]).to.deep.equal([at.tenants[place].id]);
            const { text } = await ask('GET', `${at.core.url}/console/calls.csv`, inTenancy(session, toTenancy(tenancy)));
            expect([text.includes('"Inspections"'), text.includes('"Appointment reminders"')]).to.deep.equal([
              tenancy === 'otherAccount',
              tenancy === 'account',
            ]);
            const facets = await ask('GET', `${at.core.url}/console/activity/facets`, inTenancy(session, toTenancy(tenancy)));
            const names = activityFacetsSchema.parse(facets.json).actors.map(({ name }) => name);
            expect([names.includes('Oda Other'), names.includes('Ada Account')]).to.deep.equal([
              tenancy === 'otherAccount',
              tenancy === 'account',
            ]);
          }
        });

        it(`creates and revokes keys only there, whatever the session of ${session} has selected`, async () => {
          const body = { name: 'theirs', expiration: { kind: 'none' }, timeZone: 'UTC' };
          const created = await ask('POST', `${at.core.url}/console/api-keys`, { ...inTenancy(session, toTenancy('otherAccount')), body });
          expect(await namesIn('staff', toTenancy('otherAccount'))).to.include('theirs');
          expect((await placeCall(at.core.url, at.tenants.otherCampaign.id, textAt(created, 'keyValue'))).status).to.equal(202);
          expect((await placeCall(at.core.url, at.tenants.campaign.id, textAt(created, 'keyValue'))).status).to.equal(403);
          const url = `${at.core.url}/console/api-keys/${textAt(created, 'apiKey', 'id')}`;
          expect((await ask('DELETE', url, inTenancy(session, toTenancy('partner')))).status).to.equal(404);
          expect((await ask('DELETE', url, inTenancy(session, toTenancy('otherPartner')))).status).to.equal(204);
        });
      }

      it("leaves the session's selection unchanged", async () => {
        const { json } = await ask('GET', `${at.core.url}/console/session`, as('staff in account'));
        expect(sessionSchema.parse(json).tenancy?.id).to.equal(at.tenants.account.id);
      });

      for (const viewer of everyone.filter((who) => !who.startsWith('staff'))) {
        it(`is refused for ${viewer}, even for their own tenancy`, async () => {
          const answer = await ask('GET', `${at.core.url}/console/api-keys`, inTenancy(viewer, toTenancy('account')));
          expect(textAt(answer, 'type')).to.match(/#forbidden$/);
        });
      }

      it('gets a 404 for a missing tenancy, and a 400 for a malformed tenancy', async () => {
        const statuses: number[] = [];
        const { id } = at.tenants.account;
        for (const tenancy of [
          'account/none',
          `partner/${id}`,
          '',
          id,
          `staff/${id}`,
          'account/',
          `account/${id}/`,
          [`account/${id}`, `account/${id}`],
        ])
          statuses.push((await ask('GET', `${at.core.url}/console/api-keys`, inTenancy('staff', tenancy))).status);
        expect(statuses).to.deep.equal([404, 404, 400, 400, 400, 400, 400, 400]);
      });

      it('is refused from another site before the tenancy is looked up', async () => {
        const headers = { [tenancyHeader]: 'account/none', 'Sec-Fetch-Site': 'cross-site' };
        const answer = await ask('GET', `${at.core.url}/console/api-keys`, { ...as('staff'), headers });
        expect(textAt(answer, 'type')).to.match(/#cross-site$/);
      });
    });

    describe('a key always has the current access of a creator', () => {
      const file = (user: object) =>
        importFileSchema.parse({
          partners: [
            { externalId: 'p1', name: 'First' },
            { externalId: 'p2', name: 'Second' },
          ],
          accounts: [
            { externalId: 'a1', name: 'First account', partner: 'p1' },
            { externalId: 'a2', name: 'Second account', partner: 'p2' },
            { externalId: 'a3', name: 'Third account', partner: 'p1' },
          ],
          campaigns: [
            { externalId: 'c1', name: 'First campaign', account: 'a1' },
            { externalId: 'c2', name: 'Second campaign', account: 'a2' },
          ],
          users: [{ externalId: 'u1', email: 'mover@example.com', name: 'Mover', ...user }],
        });
      const importUser = (user: object) =>
        importAll(at.direct.ports, at.direct.storage.imports, async () => undefined, operator.actor, file(user));

      it('who is limited to another account, and who can still see, find and revoke the keys from the previous account', async () => {
        const tied = { externalId: 'u2', email: 'tied@example.com', userType: 'partner', partner: 'p1' };
        const { passwords } = await importUser({ ...tied, account: 'a1' });
        cookies.set('tied again', await signInFirst(at.core.url, tied.email, passwords[0]?.password));
        const { id, keyValue } = await createKey(at.core.url, cookies.get('tied again') ?? '');
        await importUser({ ...tied, account: 'a3' });
        cookies.set('tied again', await signIn(at.core.url, tied.email));
        const { apiKeys, total } = apiKeysSchema.parse((await ask('GET', `${at.core.url}/console/api-keys`, as('tied again'))).json);
        expect(apiKeys).to.have.length(total);
        expect(apiKeys.map((apiKey) => apiKey.id)).to.deep.equal([id]);
        const sha256 = toDigest(keyValue);
        const identified = await ask('POST', `${at.core.url}/console/api-keys/identify`, { ...as('tied again'), body: { sha256 } });
        expect(textAt(identified, 'apiKey', 'id')).to.equal(id);
        expect((await ask('DELETE', `${at.core.url}/console/api-keys/${id}`, as('tied again'))).status).to.equal(204);
      });

      it('who is moved, promoted or demoted, from the next request on', async () => {
        const { passwords } = await importUser({ userType: 'account', account: 'a1' });
        const cookie = await signInFirst(at.core.url, 'mover@example.com', passwords[0]?.password);
        const { keyValue } = await createKey(at.core.url, cookie);
        const findImported = async (table: 'campaigns' | 'partners', ids: string[]) => {
          const rows = await at.direct.storage.database.read(table).whereIn('external_id', ids);
          return rows.map(({ id, external_id }) => ({ id, external_id: external_id ?? '' }));
        };
        const campaigns = await findImported('campaigns', ['c1', 'c2']);
        const statuses = async () => {
          const byCampaign: Record<string, number> = {};
          for (const { id, external_id } of campaigns) byCampaign[external_id] = (await placeCall(at.core.url, id, keyValue)).status;
          return byCampaign;
        };
        // Only administrators of the partner whose campaigns the key has access to can see the key.
        for (const { id, external_id } of await findImported('partners', ['p1', 'p2'])) {
          const email = `of-${external_id}@example.com`;
          const input = { email, name: external_id, userType: 'partner', accountId: null, partnerId: id } as const;
          await createUser(at.direct.ports, operator, input, password);
          cookies.set(external_id, await signIn(at.core.url, email));
        }
        const totals = async () => {
          const counts: Record<string, number> = {};
          for (const partner of ['p1', 'p2']) {
            const { apiKeys, total } = apiKeysSchema.parse((await ask('GET', `${at.core.url}/console/api-keys`, as(partner))).json);
            expect(apiKeys).to.have.length(total);
            counts[partner] = total;
          }
          return counts;
        };
        const first = { reached: { c1: 202, c2: 403 }, seen: { p1: 1, p2: 0 } };
        const second = { reached: { c1: 403, c2: 202 }, seen: { p1: 0, p2: 1 } };
        const now = async () => ({ reached: await statuses(), seen: await totals() });
        expect(await now()).to.deep.equal(first);
        await importUser({ userType: 'account', account: 'a2' });
        expect(await now()).to.deep.equal(second);
        await importUser({ userType: 'partner', partner: 'p1' });
        expect(await now()).to.deep.equal(first);
        await importUser({ userType: 'partner', partner: 'p2', account: 'a2' });
        expect(await now()).to.deep.equal(second);
        // A staff member's key has access to the tenancy where it was created.
        await importUser({ userType: 'staff' });
        expect(await now()).to.deep.equal(first);
      });
    });
  });
});
