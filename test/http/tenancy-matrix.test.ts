import { expect } from 'chai';
import { apiKeyDetailsSchema, apiKeysSchema, identifiedApiKeySchema } from '#contract/console/api-keys.ts';
import { allCallsSummarySchema, callsSchema } from '#contract/console/calls.ts';
import { accountsSchema, campaignsSchema } from '#contract/console/directory.ts';
import { toDigest } from '../../core/domain/api-keys.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { everyone, type Place, places, reaches, sees, tenancySuite, type Who } from '../support/tenancy-suite.ts';
import { createKey, placeCall, somePhone } from '../support/tenants.ts';

/** The campaigns whose calls each viewer sees. A user limited to an account sees fewer than their key has access to. */
const campaignsByWho: Record<Who, Place[]> = { ...reaches, tied: ['campaign'] };

describe('under the tenancy rules,', () => {
  onEachDatabase((kind) => {
    const at = tenancySuite(kind);
    const { as, getKey, cookies, calls } = at;

    const accountOf = (place: Place) => {
      const { account, siblingAccount, otherAccount } = at.tenants;
      return { campaign: account, siblingCampaign: siblingAccount, otherCampaign: otherAccount }[place];
    };
    const madeIn = (who: Who) => {
      const account = { sibling: at.tenants.siblingAccount, other: at.tenants.otherAccount }[String(who)] ?? at.tenants.account;
      const partner = who === 'otherPartner' ? at.tenants.otherPartner : at.tenants.partner;
      const isPartners = who === 'partner' || who === 'otherPartner' || who === 'staff in partner';
      const { id, name } = isPartners ? partner : account;
      return { kind: isPartners ? 'partner' : 'account', id, name };
    };

    /** Tries something with the key of each creator. @returns the creators by outcome */
    const tryEach = async (attempt: (creator: Who) => Promise<unknown>) => {
      const outcomes: [Who, string][] = [];
      for (const creator of everyone) outcomes.push([creator, JSON.stringify(await attempt(creator))]);
      return Object.fromEntries(outcomes);
    };
    const expected = (viewer: Who | 'staff', inSight: unknown, outOfSight: unknown) =>
      Object.fromEntries(everyone.map((creator) => [creator, JSON.stringify(sees[viewer].includes(creator) ? inSight : outOfSight)]));
    const keyUrl = (creator: Who) => `${at.core.url}/console/api-keys/${getKey(creator).id}`;
    const placeWith = async (creator: Who, keyValue: string) =>
      (await placeCall(at.core.url, at.tenants[reaches[creator][0] ?? 'campaign'].id, keyValue)).status;

    for (const viewer of [...everyone, 'staff'] as const) {
      it(`${viewer} lists exactly the keys visible to them`, async () => {
        const { apiKeys, total } = apiKeysSchema.parse((await ask('GET', `${at.core.url}/console/api-keys`, as(viewer))).json);
        expect(apiKeys.map(({ name }) => name).sort()).to.deep.equal([...sees[viewer]].sort());
        expect(total).to.equal(sees[viewer].length);
        const hasOwners = apiKeys.every(({ owner }) => owner !== undefined);
        if (apiKeys.length > 0)
          expect(hasOwners).to.equal(['partner', 'tied', 'otherPartner', 'staff in account', 'staff in partner'].includes(viewer));
      });

      it(`${viewer} sees exactly those keys by their IDs`, async () => {
        const statuses = await tryEach((creator) =>
          Promise.all(
            ['/revocation', '?timeZone=UTC'].map(async (rest) => (await ask('GET', `${keyUrl(creator)}${rest}`, as(viewer))).status),
          ),
        );
        expect(statuses).to.deep.equal(expected(viewer, [200, 200], [404, 404]));
      });

      it(`${viewer} identifies exactly those keys by their digests`, async () => {
        const names = await tryEach(async (creator) => {
          const body = { sha256: toDigest(getKey(creator).keyValue) };
          const answer = await ask('POST', `${at.core.url}/console/api-keys/identify`, { ...as(viewer), body });
          return identifiedApiKeySchema.parse(answer.json).apiKey?.name === creator;
        });
        expect(names).to.deep.equal(expected(viewer, true, false));
      });

      it(`${viewer} limits exactly those keys`, async () => {
        const statuses = await tryEach(async (creator) => {
          const change = async (body: object) => (await ask('PATCH', keyUrl(creator), { ...as(viewer), body })).status;
          const limited = await change({ addresses: ['192.0.2.0/24'] });
          return [limited, await placeWith(creator, getKey(creator).keyValue), await change({ addresses: null })];
        });
        expect(statuses).to.deep.equal(expected(viewer, [200, 401, 200], [404, 202, 404]));
      });
    }

    /** A key of each creator that no viewer has revoked yet. */
    const spares = new Map<Who, { id: string; keyValue: string }>();
    for (const viewer of [...everyone, 'staff'] as const) {
      it(`${viewer} revokes exactly the keys visible to them`, async () => {
        const statuses = await tryEach(async (creator) => {
          const spare = spares.get(creator) ?? (await createKey(at.core.url, cookies.get(creator) ?? '', 'spare'));
          const revoked = (await ask('DELETE', `${at.core.url}/console/api-keys/${spare.id}`, as(viewer))).status;
          const placed = await placeWith(creator, spare.keyValue);
          if (placed === 202) spares.set(creator, spare);
          else spares.delete(creator);
          return [revoked, placed];
        });
        expect(statuses).to.deep.equal(expected(viewer, [204, 401], [404, 202]));
      });
    }

    for (const creator of everyone) {
      for (const place of places) {
        const inReach = reaches[creator].includes(place);
        it(`a key of ${creator} ${inReach ? 'has' : 'has no'} access to the ${place}`, async () => {
          const placed = await placeCall(at.core.url, at.tenants[place].id, getKey(creator).keyValue);
          expect(placed.status).to.equal(inReach ? 202 : 403);
          const url = `${at.core.url}/api/v1/campaigns/${at.tenants[place].id}/contacts/on-demand/by-request-id/none`;
          const cancelled = await ask('DELETE', url, { key: getKey(creator).keyValue });
          expect(cancelled.status).to.equal(inReach ? 404 : 403);
        });
      }

      it(`the details of a key of ${creator} show where it was created and which campaigns it has access to`, async () => {
        const answer = await ask('GET', `${at.core.url}/console/api-keys/${getKey(creator).id}?timeZone=UTC`, as(creator));
        const { createdIn, reach } = apiKeyDetailsSchema.parse(answer.json);
        expect(createdIn).to.deep.equal(madeIn(creator));
        const told = places.filter((place) => reach.id === accountOf(place)[reach.kind === 'account' ? 'id' : 'partnerId']);
        expect(told).to.deep.equal(reaches[creator]);
      });
    }

    for (const viewer of [...everyone, 'staff'] as const) {
      for (const place of places) {
        const inScope = viewer !== 'staff' && campaignsByWho[viewer].includes(place);
        it(`${viewer} ${inScope ? 'sees' : "doesn't see"} the calls of the ${place} and their outcomes`, async () => {
          const url = `${at.core.url}/console/campaigns/${at.tenants[place].id}/calls`;
          const statuses: number[] = [];
          for (const what of ['', '/summary?timeZone=UTC', `/${calls.get(place)}`, '.csv'])
            statuses.push((await ask('GET', url + what, as(viewer))).status);
          expect(statuses).to.deep.equal(Array(4).fill(inScope ? 200 : 404));
          const listed = await ask('GET', `${at.core.url}/console/calls`, as(viewer));
          const campaignIds = callsSchema.parse(listed.json).calls.map(({ campaign }) => campaign?.id);
          expect(campaignIds.includes(at.tenants[place].id)).to.equal(inScope);
          const all = await ask('GET', `${at.core.url}/console/calls/summary?timeZone=UTC`, as(viewer));
          const counted = allCallsSummarySchema.parse(all.json).days.flatMap(({ campaigns }) => campaigns.map(({ id }) => id));
          expect(counted.includes(at.tenants[place].id)).to.equal(inScope);
        });

        it(`${viewer} ${inScope ? 'finds' : "doesn't find"} the ${place} and its account by name and ID`, async () => {
          const account = accountOf(place);
          const { id, name } = at.tenants[place];
          const counts: number[] = [];
          for (const search of [name, id]) {
            const answer = await ask('GET', `${at.core.url}/console/campaigns?search=${encodeURIComponent(search)}`, as(viewer));
            counts.push(campaignsSchema.parse(answer.json).campaigns.length);
          }
          for (const search of [account.name, account.id]) {
            const answer = await ask('GET', `${at.core.url}/console/accounts?search=${encodeURIComponent(search)}`, as(viewer));
            counts.push(accountsSchema.parse(answer.json).accounts.length);
          }
          expect(counts).to.deep.equal(Array(4).fill(inScope ? 1 : 0));
        });
      }
    }

    /**
     * The users who manage each account's do-not-call list, calling hours and numbers. Account users can only read these and add numbers.
     */
    const isAdministrator = (viewer: string) => !['account', 'teammate', 'sibling', 'other', 'staff'].includes(viewer);
    const addEntry = async (owner: { accountId: string | null; partnerId: string }) => {
      const { clock, randomness, stores } = at.direct.ports;
      const numbers = [{ id: randomness.id(), phone: somePhone() }] as const;
      const entry = { reason: 'asked', note: null, source: 'admin', call: null, createdBy: null, endsAt: null } as const;
      await stores.doNotCall.addNumbers({ ...entry, owner, numbers, createdAt: clock.now() }, clock.now(), null);
      return numbers[0];
    };
    // The statements of these rules are tested on both databases where the rules are.
    for (const viewer of kind === 'sqlite' ? ([...everyone, 'staff'] as const) : []) {
      for (const place of places) {
        const inScope = viewer !== 'staff' && campaignsByWho[viewer].includes(place);
        const does = !inScope ? 'neither sees nor changes' : isAdministrator(viewer) ? 'changes' : 'only sees';
        it(`${viewer} ${does} the do-not-call list, calling hours and numbers of the ${place}`, async () => {
          const account = accountOf(place);
          const { id, phone } = await addEntry({ accountId: account.id, partnerId: account.partnerId });
          const askStatus = async (method: string, path: string, body?: object) =>
            (await ask(method, `${at.core.url}/console/${path}`, { ...as(viewer), ...(body ? { body } : {}) })).status;
          const listed = await ask('GET', `${at.core.url}/console/do-not-call?search=${encodeURIComponent(phone)}`, as(viewer));
          const exported = await ask('GET', `${at.core.url}/console/do-not-call.csv?search=${encodeURIComponent(phone)}`, as(viewer));
          expect([listed.text.includes(phone), exported.text.includes(phone)]).to.deep.equal([inScope, inScope]);

          const [read, added, changed] = inScope
            ? [200, 201, isAdministrator(viewer) ? 200 : 403]
            : Array(3).fill(viewer === 'staff' ? 403 : 404);
          const refused = isAdministrator(viewer) || viewer === 'staff' ? changed : 403;
          const numbers = { countries: null, kinds: null };
          for (const scope of [`scope=account&id=${account.id}`, `scope=campaign&id=${at.tenants[place].id}`]) {
            expect(await askStatus('GET', `calling-hours?${scope}`)).to.equal(read);
            expect(await askStatus('PUT', `calling-hours?${scope}`, { rules: [] })).to.equal(refused);
          }
          expect(await askStatus('GET', `numbers?scope=account&id=${account.id}`)).to.equal(read);
          expect(await askStatus('PUT', `numbers?scope=account&id=${account.id}`, numbers)).to.equal(refused);
          const seesPartner = refused === 200 && !['tied', 'staff in account'].includes(viewer);
          expect(await askStatus('GET', `accounts/${account.id}/opt-outs`)).to.equal(read);
          const setOptOuts = await askStatus('PUT', `accounts/${account.id}/opt-outs`, { listedFor: 'account' });
          expect(setOptOuts).to.equal(seesPartner || refused !== 200 ? refused : 403);
          expect(await askStatus('POST', 'numbers/check', { phone, campaignId: at.tenants[place].id })).to.equal(read);
          expect(await askStatus('POST', 'do-not-call', { phones: [somePhone()], reason: 'asked', accountId: account.id })).to.equal(added);
          expect(await askStatus('DELETE', `do-not-call/${id}`, { reason: 'Test' })).to.equal(refused === 200 ? 204 : refused);
        });
      }

      const ownsPartner = ['partner', 'staff in partner'].includes(viewer);
      it(`${viewer} ${ownsPartner ? 'sees and changes' : 'neither sees nor changes'} the calling hours, numbers and do-not-call list of the partner itself`, async () => {
        const { id, phone } = await addEntry({ accountId: null, partnerId: at.tenants.partner.id });
        const listed = await ask('GET', `${at.core.url}/console/do-not-call?search=${encodeURIComponent(phone)}`, as(viewer));
        expect(listed.text.includes(phone)).to.equal(ownsPartner);
        const scope = `scope=partner&id=${at.tenants.partner.id}`;
        const statuses: number[] = [];
        for (const [method, path, body] of [
          ['GET', `calling-hours?${scope}`],
          ['GET', `numbers?${scope}`],
          ['POST', 'do-not-call', { phones: [somePhone()], reason: 'asked', partnerId: at.tenants.partner.id }],
          ['PUT', `calling-hours?${scope}`, { rules: [] }],
          ['PUT', `numbers?${scope}`, { countries: null, kinds: null }],
          ['DELETE', `do-not-call/${id}`, { reason: 'Test' }],
        ] as const)
          statuses.push((await ask(method, `${at.core.url}/console/${path}`, { ...as(viewer), ...(body ? { body } : {}) })).status);
        const refused = viewer === 'staff' ? 403 : 404;
        const changed = isAdministrator(viewer) ? refused : 403;
        expect(statuses).to.deep.equal(
          ownsPartner ? [200, 200, 201, 200, 200, 204] : [...Array(3).fill(refused), ...Array(3).fill(changed)],
        );
      });
    }

    describe('next to the calls', () => {
      /** The creators of keys by the contact IDs of the calls that they placed, oldest first. */
      const creatorsIn = new Map<Place, Map<string, Who>>();
      before(async () => {
        for (const place of places) {
          const creators = new Map<string, Who>();
          for (const creator of everyone.filter((who) => reaches[who].includes(place))) {
            const revoked = await createKey(at.core.url, cookies.get(creator) ?? '', creator);
            for (const { keyValue } of [getKey(creator), revoked])
              creators.set(textAt(await placeCall(at.core.url, at.tenants[place].id, keyValue), 'contactId'), creator);
            await ask('DELETE', `${at.core.url}/console/api-keys/${revoked.id}`, as(creator));
          }
          creatorsIn.set(place, creators);
        }
      });

      for (const viewer of everyone) {
        it(`${viewer} sees only the names of visible keys, including revoked keys`, async () => {
          for (const place of campaignsByWho[viewer]) {
            const creators = creatorsIn.get(place) ?? expect.fail('no calls');
            const answer = await ask('GET', `${at.core.url}/console/campaigns/${at.tenants[place].id}/calls`, as(viewer));
            const { calls } = callsSchema.parse(answer.json);
            const seen = calls.flatMap(({ contactId, apiKey }) => {
              const creator = creators.get(contactId);
              return creator ? [[creator, apiKey?.name]] : [];
            });
            const named = [...creators.values()].map((creator) => [creator, sees[viewer].includes(creator) ? creator : undefined]);
            expect(seen.toReversed()).to.deep.equal(named);
          }
        });
      }
    });
  });
});
