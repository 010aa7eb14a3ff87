import { expect } from 'chai';
import { z } from 'zod';
import { activityFacetsSchema } from '#contract/console/activity.ts';
import { apiKeyDetailsSchema, apiKeysSchema, identifiedApiKeySchema } from '#contract/console/api-keys.ts';
import { allCallsSummarySchema, callsSchema } from '#contract/console/calls.ts';
import { namedSchema } from '#contract/console/common.ts';
import { accountsSchema, campaignsSchema } from '#contract/console/directory.ts';
import { sessionSchema, tenancyHeader } from '#contract/console/session.ts';
import { toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { importAll } from '../../core/domain/directory/import.ts';
import { importFileSchema } from '../../core/domain/directory/import-file.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import type { RunningCore } from '../support/core.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { createKey, type DirectAccess, password, placeCall, signIn, signInFirst, somePhone, type Tenants } from '../support/tenants.ts';

type Who = 'account' | 'teammate' | 'sibling' | 'partner' | 'tied' | 'other' | 'otherPartner' | 'staff in account' | 'staff in partner';

const everyone: Who[] = [
  'account',
  'teammate',
  'sibling',
  'partner',
  'tied',
  'other',
  'otherPartner',
  'staff in account',
  'staff in partner',
];

/** Whose keys each viewer can see and revoke. Each key is named after its creator. */
const sees: Record<Who | 'staff', Who[]> = {
  account: ['account'],
  teammate: ['teammate'],
  sibling: ['sibling'],
  // Every user under the partner, and staff who created theirs there or in one of its accounts.
  partner: ['account', 'teammate', 'sibling', 'partner', 'tied', 'staff in account', 'staff in partner'],
  // Created by anyone in the account that the user is limited to.
  tied: ['account', 'teammate', 'tied', 'staff in account'],
  other: ['other'],
  otherPartner: ['other', 'otherPartner'],
  'staff in account': ['account', 'teammate', 'tied', 'staff in account'],
  'staff in partner': ['account', 'teammate', 'sibling', 'partner', 'tied', 'staff in account', 'staff in partner'],
  staff: [],
};

type Place = 'campaign' | 'siblingCampaign' | 'otherCampaign';
const places: Place[] = ['campaign', 'siblingCampaign', 'otherCampaign'];

/** The campaigns that each key has access to. */
const reaches: Record<Who, Place[]> = {
  account: ['campaign'],
  teammate: ['campaign'],
  sibling: ['siblingCampaign'],
  partner: ['campaign', 'siblingCampaign'],
  tied: ['campaign', 'siblingCampaign'],
  other: ['otherCampaign'],
  otherPartner: ['otherCampaign'],
  'staff in account': ['campaign'],
  'staff in partner': ['campaign', 'siblingCampaign'],
};

/** The campaigns whose calls each viewer sees. A user limited to an account sees fewer than their key has access to. */
const campaignsByWho: Record<Who, Place[]> = { ...reaches, tied: ['campaign'] };

const emails: Record<Who | 'staff', string> = {
  account: 'ada',
  teammate: 'tom',
  sibling: 'sue',
  partner: 'pat',
  tied: 'tia',
  other: 'oda',
  otherPartner: 'otto',
  'staff in account': 'stan',
  'staff in partner': 'stan',
  staff: 'stan',
};

describe('the rules for who can see, revoke and use what', () => {
  onEachDatabase((kind) => {
    let core: RunningCore;
    let close: CoreHarness['close'];
    let direct: DirectAccess;
    let tenants: Tenants;
    const cookies = new Map<string, string>();
    const keys = new Map<string, { id: string; keyValue: string }>();
    const calls = new Map<Place, string>();

    before(async () => {
      ({ core, direct, tenants, close } = await openCore({ kind }));
      for (const who of [...everyone, 'staff'] as const) {
        const cookie = await signIn(core.url, `${emails[who]}@example.com`);
        cookies.set(who, cookie);
        const tenancy = {
          'staff in account': { kind: 'account', id: tenants.account.id },
          'staff in partner': { kind: 'partner', id: tenants.partner.id },
        };
        if (who === 'staff in account' || who === 'staff in partner') {
          await ask('PUT', `${core.url}/console/session/tenancy`, { cookie, body: tenancy[who] });
        }
      }
      for (const who of everyone) keys.set(who, await createKey(core.url, cookies.get(who) ?? '', who));
      for (const place of places) {
        const who = everyone.find((each) => reaches[each].includes(place)) ?? '';
        calls.set(place, textAt(await placeCall(core.url, tenants[place].id, getKey(who).keyValue), 'contactId'));
      }
    });
    after(() => close());

    const as = (who: string) => ({ cookie: cookies.get(who) ?? '' });
    const madeIn = (who: Who) => {
      const account = { sibling: tenants.siblingAccount, other: tenants.otherAccount }[String(who)] ?? tenants.account;
      const partner = who === 'otherPartner' ? tenants.otherPartner : tenants.partner;
      const isPartners = who === 'partner' || who === 'otherPartner' || who === 'staff in partner';
      const { id, name } = isPartners ? partner : account;
      return { kind: isPartners ? 'partner' : 'account', id, name };
    };
    const getKey = (who: string) => keys.get(who) ?? { id: '', keyValue: '' };

    for (const viewer of [...everyone, 'staff'] as const) {
      it(`${viewer} lists exactly the keys visible to them`, async () => {
        const { apiKeys, total } = apiKeysSchema.parse((await ask('GET', `${core.url}/console/api-keys`, as(viewer))).json);
        expect(apiKeys.map(({ name }) => name).sort()).to.deep.equal([...sees[viewer]].sort());
        expect(total).to.equal(sees[viewer].length);
        const hasOwners = apiKeys.every(({ owner }) => owner !== undefined);
        if (apiKeys.length > 0)
          expect(hasOwners).to.equal(['partner', 'tied', 'otherPartner', 'staff in account', 'staff in partner'].includes(viewer));
      });

      for (const creator of everyone) {
        const inSight = sees[viewer].includes(creator);
        it(`${viewer} ${inSight ? 'sees' : 'does not see'} the key of ${creator} by its ID`, async () => {
          const answer = await ask('GET', `${core.url}/console/api-keys/${getKey(creator).id}/revocation`, as(viewer));
          expect(answer.status).to.equal(inSight ? 200 : 404);
          const details = await ask('GET', `${core.url}/console/api-keys/${getKey(creator).id}?timeZone=UTC`, as(viewer));
          expect(details.status).to.equal(inSight ? 200 : 404);
          const older = await ask('GET', `${core.url}/console/api-keys?olderThan=${getKey(creator).id}`, as(viewer));
          expect(older.status).to.equal(inSight ? 200 : 404);
        });

        it(`${viewer} ${inSight ? 'identifies' : 'does not identify'} the key of ${creator} by its digest`, async () => {
          const body = { sha256: toDigest(getKey(creator).keyValue) };
          const answer = await ask('POST', `${core.url}/console/api-keys/identify`, { ...as(viewer), body });
          expect(identifiedApiKeySchema.parse(answer.json).apiKey?.name).to.equal(inSight ? creator : undefined);
        });

        it(`${viewer} ${inSight ? 'revokes' : 'cannot revoke'} a key of ${creator}`, async () => {
          const spare = await createKey(core.url, cookies.get(creator) ?? '', 'spare');
          const answer = await ask('DELETE', `${core.url}/console/api-keys/${spare.id}`, as(viewer));
          expect(answer.status).to.equal(inSight ? 204 : 404);
          const [place = 'campaign'] = reaches[creator];
          expect((await placeCall(core.url, tenants[place].id, spare.keyValue)).status).to.equal(inSight ? 401 : 202);
          if (!inSight) await ask('DELETE', `${core.url}/console/api-keys/${spare.id}`, as(creator));
        });

        it(`${viewer} ${inSight ? 'revokes' : 'cannot revoke'} a key of ${creator} with others`, async () => {
          const spare = await createKey(core.url, cookies.get(creator) ?? '', 'spare');
          const body = { ids: [spare.id] };
          const answer = await ask('POST', `${core.url}/console/api-keys/revocations`, { ...as(viewer), body });
          expect(answer.json).to.deep.equal(inSight ? { revoked: [spare.id], gone: [] } : { revoked: [], gone: [spare.id] });
          const [place = 'campaign'] = reaches[creator];
          expect((await placeCall(core.url, tenants[place].id, spare.keyValue)).status).to.equal(inSight ? 401 : 202);
          if (!inSight) await ask('DELETE', `${core.url}/console/api-keys/${spare.id}`, as(creator));
        });
      }
    }

    for (const creator of everyone) {
      for (const place of places) {
        const inReach = reaches[creator].includes(place);
        it(`a key of ${creator} ${inReach ? 'has' : 'has no'} access to the ${place}`, async () => {
          const placed = await placeCall(core.url, tenants[place].id, getKey(creator).keyValue);
          expect(placed.status).to.equal(inReach ? 202 : 403);
          const url = `${core.url}/api/v1/campaigns/${tenants[place].id}/contacts/on-demand/by-request-id/none`;
          const cancelled = await ask('DELETE', url, { key: getKey(creator).keyValue });
          expect(cancelled.status).to.equal(inReach ? 404 : 403);
        });
      }
    }

    for (const creator of everyone) {
      it(`the details of a key of ${creator} show where it was created and which campaigns it has access to`, async () => {
        const answer = await ask('GET', `${core.url}/console/api-keys/${getKey(creator).id}?timeZone=UTC`, as(creator));
        const { createdIn, reach } = apiKeyDetailsSchema.parse(answer.json);
        expect(createdIn).to.deep.equal(madeIn(creator));
        const accounts = { campaign: tenants.account, siblingCampaign: tenants.siblingAccount, otherCampaign: tenants.otherAccount };
        const told = places.filter((place) => reach.id === (reach.kind === 'account' ? accounts[place].id : accounts[place].partnerId));
        expect(told).to.deep.equal(reaches[creator]);
      });
    }

    for (const viewer of [...everyone, 'staff'] as const) {
      for (const place of places) {
        const inScope = viewer !== 'staff' && campaignsByWho[viewer].includes(place);
        it(`${viewer} ${inScope ? 'sees' : 'does not see'} the calls of the ${place} and their outcomes`, async () => {
          const url = `${core.url}/console/campaigns/${tenants[place].id}/calls`;
          const statuses: number[] = [];
          for (const what of ['', '/summary?timeZone=UTC', `/${calls.get(place)}`, '.csv'])
            statuses.push((await ask('GET', url + what, as(viewer))).status);
          expect(statuses).to.deep.equal(Array(4).fill(inScope ? 200 : 404));
          const listed = await ask('GET', `${core.url}/console/calls`, as(viewer));
          const campaignIds = callsSchema.parse(listed.json).calls.map(({ campaign }) => campaign?.id);
          expect(campaignIds.includes(tenants[place].id)).to.equal(inScope);
          const all = await ask('GET', `${core.url}/console/calls/summary?timeZone=UTC`, as(viewer));
          const counted = allCallsSummarySchema.parse(all.json).days.flatMap(({ campaigns }) => campaigns.map(({ id }) => id));
          expect(counted.includes(tenants[place].id)).to.equal(inScope);
        });
      }
    }

    for (const viewer of [...everyone, 'staff'] as const) {
      for (const place of places) {
        const inScope = viewer !== 'staff' && campaignsByWho[viewer].includes(place);
        it(`${viewer} ${inScope ? 'finds' : 'does not find'} the ${place} and its account by name and ID`, async () => {
          const account = { campaign: tenants.account, siblingCampaign: tenants.siblingAccount, otherCampaign: tenants.otherAccount }[
            place
          ];
          const { id, name } = tenants[place];
          const counts: number[] = [];
          for (const search of [name, id]) {
            const answer = await ask('GET', `${core.url}/console/campaigns?search=${encodeURIComponent(search)}`, as(viewer));
            counts.push(campaignsSchema.parse(answer.json).campaigns.length);
          }
          for (const search of [account.name, account.id]) {
            const answer = await ask('GET', `${core.url}/console/accounts?search=${encodeURIComponent(search)}`, as(viewer));
            counts.push(accountsSchema.parse(answer.json).accounts.length);
          }
          expect(counts).to.deep.equal(Array(4).fill(inScope ? 1 : 0));
          // A cursor from another scope must not reveal what sorts before it.
          const after = await ask('GET', `${core.url}/console/campaigns?cursor=${tenants.otherCampaign.id}`, as(viewer));
          expect(campaignsSchema.parse(after.json).campaigns).to.deep.equal([]);
        });
      }
    }

    for (const viewer of [...everyone, 'staff'] as const) {
      it(`${viewer} manages exactly the partners, accounts and campaigns in their scope`, async () => {
        const isStaff = viewer.startsWith('staff');
        const owned = { partner: 'partner', otherPartner: 'otherPartner' }[String(viewer)];
        const askStatus = async (method: string, path: string, body?: object) =>
          (await ask(method, `${core.url}/console/directory/${path}`, { ...as(viewer), ...(body ? { body } : {}) })).status;

        const names = new Map<string, string[]>();
        for (const list of ['partners', 'accounts', 'campaigns'] as const) {
          const { status, json } = await ask('GET', `${core.url}/console/directory/${list}`, as(viewer));
          names.set(
            list,
            status === 200
              ? z
                  .array(namedSchema)
                  .parse(json[list])
                  .map(({ id }) => id)
              : [String(status)],
          );
        }
        const { partner, otherPartner, account, siblingAccount, otherAccount, campaign, siblingCampaign, otherCampaign } = tenants;
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
        expect([...names.values()]).to.deep.equal(expected);

        const refused = isStaff || owned ? 422 : 403;
        for (const [own, ofPartner, ofAccount, ofCampaign] of [
          ['partner', partner, account, campaign],
          ['otherPartner', otherPartner, otherAccount, otherCampaign],
        ] as const) {
          const mayChange = isStaff || owned === own;
          const counted = async (path: string) => (await ask('GET', `${core.url}/console/directory/${path}`, as(viewer))).text;
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

    /** Who administers the protection of each account's contacts. Account users only read it, and add numbers. */
    const isAdministrator = (viewer: string) => !['account', 'teammate', 'sibling', 'other', 'staff'].includes(viewer);
    for (const viewer of [...everyone, 'staff'] as const) {
      for (const place of places) {
        const inScope = viewer !== 'staff' && campaignsByWho[viewer].includes(place);
        const does = !inScope ? 'neither sees nor changes' : isAdministrator(viewer) ? 'changes' : 'only sees';
        it(`${viewer} ${does} the do-not-call list, calling hours and numbers of the ${place}`, async () => {
          const account = { campaign: tenants.account, siblingCampaign: tenants.siblingAccount, otherCampaign: tenants.otherAccount }[
            place
          ];
          const owner = { accountId: account.id, partnerId: account.partnerId };
          const id = direct.ports.randomness.id();
          const phone = somePhone();
          const entry = { reason: 'asked', note: null, source: 'admin', call: null, createdBy: null, endsAt: null } as const;
          const createdAt = direct.ports.clock.now();
          await direct.ports.stores.protection.addNumbers({ ...entry, owner, numbers: [{ id, phone }], createdAt }, createdAt, null);
          const askStatus = async (method: string, path: string, body?: object) =>
            (await ask(method, `${core.url}/console/${path}`, { ...as(viewer), ...(body ? { body } : {}) })).status;
          const listed = await ask('GET', `${core.url}/console/do-not-call?search=${encodeURIComponent(phone)}`, as(viewer));
          const exported = await ask('GET', `${core.url}/console/do-not-call.csv?search=${encodeURIComponent(phone)}`, as(viewer));
          expect([listed.text.includes(phone), exported.text.includes(phone)]).to.deep.equal([inScope, inScope]);

          const [read, added, changed] = inScope
            ? [200, 201, isAdministrator(viewer) ? 200 : 403]
            : Array(3).fill(viewer === 'staff' ? 403 : 404);
          const refused = isAdministrator(viewer) || viewer === 'staff' ? changed : 403;
          const numbers = { countries: null, kinds: null };
          for (const scope of [`scope=account&id=${account.id}`, `scope=campaign&id=${tenants[place].id}`]) {
            expect(await askStatus('GET', `calling-hours?${scope}`)).to.equal(read);
            expect(await askStatus('PUT', `calling-hours?${scope}`, { rules: [] })).to.equal(refused);
          }
          expect(await askStatus('GET', `numbers?scope=account&id=${account.id}`)).to.equal(read);
          expect(await askStatus('PUT', `numbers?scope=account&id=${account.id}`, numbers)).to.equal(refused);
          const seesPartner = refused === 200 && !['tied', 'staff in account'].includes(viewer);
          expect(await askStatus('GET', `accounts/${account.id}/opt-outs`)).to.equal(read);
          const setOptOuts = await askStatus('PUT', `accounts/${account.id}/opt-outs`, { listedFor: 'account' });
          expect(setOptOuts).to.equal(seesPartner || refused !== 200 ? refused : 403);
          expect(await askStatus('POST', 'numbers/check', { phone, campaignId: tenants[place].id })).to.equal(read);
          expect(await askStatus('POST', 'do-not-call', { phones: [somePhone()], reason: 'asked', accountId: account.id })).to.equal(added);
          expect(await askStatus('DELETE', `do-not-call/${id}`, { reason: 'Test' })).to.equal(refused === 200 ? 204 : refused);
        });
      }

      const ownsPartner = ['partner', 'staff in partner'].includes(viewer);
      it(`${viewer} ${ownsPartner ? 'sees and changes' : 'neither sees nor changes'} the calling hours, numbers and list of the whole partner`, async () => {
        const scope = `scope=partner&id=${tenants.partner.id}`;
        const statuses: number[] = [];
        for (const path of [`calling-hours?${scope}`, `numbers?${scope}`])
          statuses.push((await ask('GET', `${core.url}/console/${path}`, as(viewer))).status);
        const body = { phones: [somePhone()], reason: 'asked', partnerId: tenants.partner.id };
        statuses.push((await ask('POST', `${core.url}/console/do-not-call`, { ...as(viewer), body })).status);
        const refused = viewer === 'staff' ? 403 : 404;
        expect(statuses).to.deep.equal(ownsPartner ? [200, 200, 201] : [refused, refused, refused]);
      });
    }

    for (const viewer of everyone) {
      it(`${viewer} sees next to the calls only the names of keys visible to them, including revoked keys`, async () => {
        const [reached = 'campaign'] = reaches[viewer];
        const { id: campaignId } = tenants[reached];
        const names = new Map<string, string>();
        for (const creator of everyone.filter((who) => reaches[who].includes(reached))) {
          const spare = await createKey(core.url, cookies.get(creator) ?? '', creator);
          for (const { keyValue } of [getKey(creator), spare]) {
            names.set(textAt(await placeCall(core.url, campaignId, keyValue), 'contactId'), creator);
          }
          await ask('DELETE', `${core.url}/console/api-keys/${spare.id}`, as(creator));
        }
        const answer = await ask('GET', `${core.url}/console/campaigns/${campaignId}/calls`, as(viewer));
        const { calls } = callsSchema.parse(answer.json);
        const seen = calls.flatMap(({ contactId, apiKey }) => (names.has(contactId) ? [[names.get(contactId), apiKey?.name]] : []));
        const expected = [...names.values()].map((creator) => [creator, sees[viewer].some((who) => who === creator) ? creator : undefined]);
        expect(seen.toReversed()).to.deep.equal(expected);
      });
    }

    describe('a staff request that names its tenancy', () => {
      const toTenancy = (place: 'account' | 'partner' | 'otherAccount' | 'otherPartner') =>
        `${place.toLowerCase().includes('account') ? 'account' : 'partner'}/${tenants[place].id}`;
      const inTenancy = (who: string, tenancy: string | string[]) => ({ ...as(who), headers: { [tenancyHeader]: tenancy } });
      const namesIn = async (who: string, tenancy: string) => {
        const answer = await ask('GET', `${core.url}/console/api-keys`, inTenancy(who, tenancy));
        return apiKeysSchema
          .parse(answer.json)
          .apiKeys.map(({ name }) => name)
          .sort();
      };

      // The same session every time, with an account, a partner or nothing selected.
      for (const session of ['staff in account', 'staff in partner', 'staff'] as const) {
        it(`applies only to that tenancy, whatever the session of ${session} has selected`, async () => {
          expect(await namesIn(session, toTenancy('account'))).to.deep.equal([...sees['staff in account']].sort());
          expect(await namesIn(session, toTenancy('partner'))).to.deep.equal([...sees['staff in partner']].sort());
          expect(await namesIn(session, toTenancy('otherAccount'))).to.deep.equal(['other']);
          const { json } = await ask('GET', `${core.url}/console/session`, inTenancy(session, toTenancy('otherPartner')));
          expect(sessionSchema.parse(json).tenancy?.name).to.equal(tenants.otherPartner.name);
          const calls = `${core.url}/console/campaigns/${tenants.otherCampaign.id}/calls`;
          expect((await ask('GET', calls, inTenancy(session, toTenancy('otherAccount')))).status).to.equal(200);
          expect((await ask('GET', calls, inTenancy(session, toTenancy('account')))).status).to.equal(404);
          // The other tests of this file also export, and a user can export only ten times per minute.
          await direct.ports.throttle.reset(`export:${tenants.users.staff.id}`);
          for (const [tenancy, place] of [
            ['otherAccount', 'otherCampaign'],
            ['account', 'campaign'],
          ] as const) {
            const all = await ask('GET', `${core.url}/console/calls`, inTenancy(session, toTenancy(tenancy)));
            const campaignIds = callsSchema.parse(all.json).calls.map(({ campaign }) => campaign?.id);
            expect([...new Set(campaignIds)]).to.deep.equal([tenants[place].id]);
            const { text } = await ask('GET', `${core.url}/console/calls.csv`, inTenancy(session, toTenancy(tenancy)));
            expect([text.includes('"Inspections"'), text.includes('"Appointment reminders"')]).to.deep.equal([
              tenancy === 'otherAccount',
              tenancy === 'account',
            ]);
            const facets = await ask('GET', `${core.url}/console/activity/facets`, inTenancy(session, toTenancy(tenancy)));
            const names = activityFacetsSchema.parse(facets.json).actors.map(({ name }) => name);
            expect([names.includes('Oda Other'), names.includes('Ada Account')]).to.deep.equal([
              tenancy === 'otherAccount',
              tenancy === 'account',
            ]);
          }
        });

        it(`creates and revokes keys only there, whatever the session of ${session} has selected`, async () => {
          const body = { name: 'theirs', expiration: { kind: 'none' }, timeZone: 'UTC' };
          const created = await ask('POST', `${core.url}/console/api-keys`, { ...inTenancy(session, toTenancy('otherAccount')), body });
          expect(await namesIn('staff', toTenancy('otherAccount'))).to.include('theirs');
          expect((await placeCall(core.url, tenants.otherCampaign.id, textAt(created, 'keyValue'))).status).to.equal(202);
          expect((await placeCall(core.url, tenants.campaign.id, textAt(created, 'keyValue'))).status).to.equal(403);
          const url = `${core.url}/console/api-keys/${textAt(created, 'apiKey', 'id')}`;
          expect((await ask('DELETE', url, inTenancy(session, toTenancy('partner')))).status).to.equal(404);
          expect((await ask('DELETE', url, inTenancy(session, toTenancy('otherPartner')))).status).to.equal(204);
        });
      }

      it("leaves the session's selection unchanged", async () => {
        const { json } = await ask('GET', `${core.url}/console/session`, as('staff in account'));
        expect(sessionSchema.parse(json).tenancy?.id).to.equal(tenants.account.id);
      });

      for (const viewer of everyone.filter((who) => !who.startsWith('staff'))) {
        it(`is refused for ${viewer}, even for their own tenancy`, async () => {
          const answer = await ask('GET', `${core.url}/console/api-keys`, inTenancy(viewer, toTenancy('account')));
          expect(textAt(answer, 'type')).to.match(/#forbidden$/);
        });
      }

      it('gets a 404 for a missing tenancy, and a 400 for a malformed tenancy', async () => {
        const statuses: number[] = [];
        const { id } = tenants.account;
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
          statuses.push((await ask('GET', `${core.url}/console/api-keys`, inTenancy('staff', tenancy))).status);
        expect(statuses).to.deep.equal([404, 404, 400, 400, 400, 400, 400, 400]);
      });

      it('is refused from another site before the tenancy is looked up', async () => {
        const headers = { [tenancyHeader]: 'account/none', 'Sec-Fetch-Site': 'cross-site' };
        const answer = await ask('GET', `${core.url}/console/api-keys`, { ...as('staff'), headers });
        expect(textAt(answer, 'type')).to.match(/#cross-site$/);
      });
    });

    describe('a key follows a creator', () => {
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
      const bring = (user: object) => importAll(direct.ports, direct.storage.imports, async () => undefined, operator, file(user));

      it('who is limited to another account, and who can still see, find and revoke the keys from the previous account', async () => {
        const tied = { externalId: 'u2', email: 'tied@example.com', userType: 'partner', partner: 'p1' };
        const { passwords } = await bring({ ...tied, account: 'a1' });
        cookies.set('tied again', await signInFirst(core.url, tied.email, passwords[0]?.password));
        const { id, keyValue } = await createKey(core.url, cookies.get('tied again') ?? '');
        await bring({ ...tied, account: 'a3' });
        const { apiKeys } = apiKeysSchema.parse((await ask('GET', `${core.url}/console/api-keys`, as('tied again'))).json);
        expect(apiKeys.map((apiKey) => apiKey.id)).to.deep.equal([id]);
        const sha256 = toDigest(keyValue);
        const identified = await ask('POST', `${core.url}/console/api-keys/identify`, { ...as('tied again'), body: { sha256 } });
        expect(textAt(identified, 'apiKey', 'id')).to.equal(id);
        expect((await ask('DELETE', `${core.url}/console/api-keys/${id}`, as('tied again'))).status).to.equal(204);
      });

      it('who is moved, promoted or demoted, from the next request on', async () => {
        const { passwords } = await bring({ userType: 'account', account: 'a1' });
        const cookie = await signInFirst(core.url, 'mover@example.com', passwords[0]?.password);
        const { keyValue } = await createKey(core.url, cookie);
        const campaigns: { id: string; external_id: string }[] = await direct.storage.database
          .read('campaigns')
          .select<{ id: string; external_id: string }[]>('id', 'external_id')
          .whereIn('external_id', ['c1', 'c2']);
        const statuses = async () => {
          const byCampaign: Record<string, number> = {};
          for (const { id, external_id } of campaigns) byCampaign[external_id] = (await placeCall(core.url, id, keyValue)).status;
          return byCampaign;
        };
        // Only an administrator of the partner whose campaigns it has access to can see it.
        const partners: { id: string; external_id: string }[] = await direct.storage.database
          .read('partners')
          .select<{ id: string; external_id: string }[]>('id', 'external_id')
          .whereIn('external_id', ['p1', 'p2']);
        for (const { id, external_id } of partners) {
          const email = `of-${external_id}@example.com`;
          await createUser(
            direct.ports,
            operator,
            { email, name: external_id, userType: 'partner', accountId: null, partnerId: id },
            password,
          );
          cookies.set(external_id, await signIn(core.url, email));
        }
        const totals = async () => {
          const counts: Record<string, number> = {};
          for (const partner of ['p1', 'p2']) {
            const { apiKeys, total } = apiKeysSchema.parse((await ask('GET', `${core.url}/console/api-keys`, as(partner))).json);
            expect(apiKeys).to.have.length(total);
            counts[partner] = total;
          }
          return counts;
        };
        const first = { reached: { c1: 202, c2: 403 }, seen: { p1: 1, p2: 0 } };
        const second = { reached: { c1: 403, c2: 202 }, seen: { p1: 0, p2: 1 } };
        const now = async () => ({ reached: await statuses(), seen: await totals() });
        expect(await now()).to.deep.equal(first);
        await bring({ userType: 'account', account: 'a2' });
        expect(await now()).to.deep.equal(second);
        await bring({ userType: 'partner', partner: 'p1' });
        expect(await now()).to.deep.equal(first);
        await bring({ userType: 'partner', partner: 'p2', account: 'a2' });
        expect(await now()).to.deep.equal(second);
        // A staff member's key has access to the tenancy where it was created.
        await bring({ userType: 'staff' });
        expect(await now()).to.deep.equal(first);
      });
    });
  });
});
