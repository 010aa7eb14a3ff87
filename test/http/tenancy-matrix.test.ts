import { expect } from 'chai';
import { apiKeyDetailsSchema, apiKeysSchema, identifiedApiKeySchema } from '#contract/console/api-keys.ts';
import { allCallsSummarySchema, callsSchema } from '#contract/console/calls.ts';
import { accountsSchema, campaignsSchema } from '#contract/console/directory.ts';
import { toDigest } from '../../core/domain/api-keys.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { everyone, type Place, places, reaches, sees, tenancySuite, type Who } from '../support/tenancy-suite.ts';
import { createKey, onDemand, placeCall, somePhone } from '../support/tenants.ts';

/** The campaigns whose calls each viewer sees. A user limited to an account sees fewer than their key has access to. */
const campaignsByWho: Record<Who | 'staff', Place[]> = { ...reaches, tied: ['campaign'], staff: [] };

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

    /** Tries something with each of these creators of keys, or places. @returns the outcomes by name */
    const tryEach = async <Name extends string>(names: readonly Name[], attempt: (name: Name) => Promise<unknown>) => {
      const outcomes: [Name, string][] = [];
      for (const name of names) outcomes.push([name, JSON.stringify(await attempt(name))]);
      return Object.fromEntries(outcomes);
    };
    const expectedFor = <Name extends string>(names: readonly Name[], allowed: readonly Name[], inSight: unknown, outOfSight: unknown) =>
      Object.fromEntries(names.map((name) => [name, JSON.stringify(allowed.includes(name) ? inSight : outOfSight)]));
    const expected = (viewer: Who | 'staff', inSight: unknown, outOfSight: unknown) =>
      expectedFor(everyone, sees[viewer], inSight, outOfSight);
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
        const statuses = await tryEach(everyone, (creator) =>
          Promise.all(
            ['/revocation', '?timeZone=UTC'].map(async (rest) => (await ask('GET', `${keyUrl(creator)}${rest}`, as(viewer))).status),
          ),
        );
        expect(statuses).to.deep.equal(expected(viewer, [200, 200], [404, 404]));
      });

      it(`${viewer} identifies exactly those keys by their digests`, async () => {
        const names = await tryEach(everyone, async (creator) => {
          const body = { sha256: toDigest(getKey(creator).keyValue) };
          const answer = await ask('POST', `${at.core.url}/console/api-keys/identify`, { ...as(viewer), body });
          return identifiedApiKeySchema.parse(answer.json).apiKey?.name === creator;
        });
        expect(names).to.deep.equal(expected(viewer, true, false));
      });

      it(`${viewer} limits exactly those keys`, async () => {
        const statuses = await tryEach(everyone, async (creator) => {
          const change = async (body: object) => (await ask('PATCH', keyUrl(creator), { ...as(viewer), body })).status;
          const limited = await change({ addresses: ['192.0.2.0/24'] });
          const placed = await placeWith(creator, getKey(creator).keyValue);
          if (limited !== 404) await change({ addresses: null });
          return [limited, placed];
        });
        expect(statuses).to.deep.equal(expected(viewer, [200, 401], [404, 202]));
      });
    }

    /** A key of each creator that no viewer has revoked yet. */
    const spares = new Map<Who, { id: string; keyValue: string }>();
    for (const viewer of [...everyone, 'staff'] as const) {
      it(`${viewer} revokes exactly the keys visible to them`, async () => {
        const statuses = await tryEach(everyone, async (creator) => {
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
      it(`a key of ${creator} has access to exactly the campaigns of its creator`, async () => {
        const { keyValue } = getKey(creator);
        // Calls of keys with a daily limit are placed by a statement of their own.
        for (const callsPerDay of [1_000, null]) {
          expect((await ask('PATCH', keyUrl(creator), { ...as(creator), body: { callsPerDay } })).status).to.equal(200);
          const statuses = await tryEach(places, async (place) => {
            const placed = await placeCall(at.core.url, at.tenants[place].id, keyValue);
            const cancelled = await ask('DELETE', `${onDemand(at.core.url, at.tenants[place].id)}/by-request-id/none`, { key: keyValue });
            return [placed.status, cancelled.status];
          });
          const what = `calls per day: ${callsPerDay}`;
          expect(statuses, what).to.deep.equal(expectedFor(places, reaches[creator], [202, 404], [403, 403]));
        }
      });

      it(`the details of a key of ${creator} show where it was created and which campaigns it has access to`, async () => {
        const answer = await ask('GET', `${at.core.url}/console/api-keys/${getKey(creator).id}?timeZone=UTC`, as(creator));
        const { createdIn, reach } = apiKeyDetailsSchema.parse(answer.json);
        expect(createdIn).to.deep.equal(madeIn(creator));
        const told = places.filter((place) => reach.id === accountOf(place)[reach.kind === 'account' ? 'id' : 'partnerId']);
        expect(told).to.deep.equal(reaches[creator]);
      });
    }

    for (const viewer of [...everyone, 'staff'] as const) {
      const inScope = campaignsByWho[viewer];

      it(`${viewer} sees exactly the calls of the campaigns in their scope, and their outcomes`, async () => {
        const statuses = await tryEach(places, async (place) => {
          const url = `${at.core.url}/console/campaigns/${at.tenants[place].id}/calls`;
          const answers: number[] = [];
          for (const what of ['', '/summary?timeZone=UTC', `/${calls.get(place)}`, '.csv'])
            answers.push((await ask('GET', url + what, as(viewer))).status);
          return answers;
        });
        expect(statuses).to.deep.equal(expectedFor(places, inScope, Array(4).fill(200), Array(4).fill(404)));
        const listed = await ask('GET', `${at.core.url}/console/calls`, as(viewer));
        const all = await ask('GET', `${at.core.url}/console/calls/summary?timeZone=UTC`, as(viewer));
        for (const campaignIds of [
          callsSchema.parse(listed.json).calls.map(({ campaign }) => campaign?.id),
          allCallsSummarySchema.parse(all.json).days.flatMap(({ campaigns }) => campaigns.map(({ id }) => id)),
        ])
          expect(places.filter((place) => campaignIds.includes(at.tenants[place].id))).to.deep.equal(inScope);
      });

      it(`${viewer} finds exactly the campaigns in their scope and their accounts, by name and ID`, async () => {
        const counts = await tryEach(places, async (place) => {
          const found: number[] = [];
          for (const { id, name } of [at.tenants[place], accountOf(place)])
            for (const search of [name, id].map(encodeURIComponent)) {
              const list = id === at.tenants[place].id ? 'campaigns' : 'accounts';
              const { json } = await ask('GET', `${at.core.url}/console/${list}?search=${search}`, as(viewer));
              found.push(list === 'campaigns' ? campaignsSchema.parse(json).campaigns.length : accountsSchema.parse(json).accounts.length);
            }
          return found;
        });
        expect(counts).to.deep.equal(expectedFor(places, inScope, Array(4).fill(1), Array(4).fill(0)));
      });
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
      const askStatus = async (method: string, path: string, body?: object) =>
        (await ask(method, `${at.core.url}/console/${path}`, { ...as(viewer), ...(body ? { body } : {}) })).status;
      const missing = viewer === 'staff' ? 403 : 404;

      it(`${viewer} ${isAdministrator(viewer) ? 'changes' : 'sees'} the do-not-call lists, calling hours and numbers of exactly the accounts in their scope`, async () => {
        const outcomes = await tryEach(places, async (place) => {
          const account = accountOf(place);
          const { id, phone } = await addEntry({ accountId: account.id, partnerId: account.partnerId });
          const shown: boolean[] = [];
          for (const list of ['do-not-call', 'do-not-call.csv']) {
            const { text } = await ask('GET', `${at.core.url}/console/${list}?search=${encodeURIComponent(phone)}`, as(viewer));
            shown.push(text.includes(phone));
          }
          const [ofAccount, ofCampaign] = [`scope=account&id=${account.id}`, `scope=campaign&id=${at.tenants[place].id}`];
          const optOuts = `accounts/${account.id}/opt-outs`;
          return {
            shown,
            read: [
              await askStatus('GET', `calling-hours?${ofAccount}`),
              await askStatus('GET', `calling-hours?${ofCampaign}`),
              await askStatus('GET', `numbers?${ofAccount}`),
              await askStatus('GET', optOuts),
              await askStatus('POST', 'numbers/check', { phone, campaignId: at.tenants[place].id }),
            ],
            added: await askStatus('POST', 'do-not-call', { phones: [somePhone()], reason: 'asked', accountId: account.id }),
            changed: [
              await askStatus('PUT', `calling-hours?${ofAccount}`, { rules: [] }),
              await askStatus('PUT', `calling-hours?${ofCampaign}`, { rules: [] }),
              await askStatus('PUT', `numbers?${ofAccount}`, { countries: null, kinds: null }),
            ],
            optOuts: await askStatus('PUT', optOuts, { listedFor: 'account' }),
            lifted: await askStatus('DELETE', `do-not-call/${id}`, { reason: 'Test' }),
          };
        });
        const seen = { shown: [true, true], read: Array(5).fill(200), added: 201 };
        const unseen = { shown: [false, false], read: Array(5).fill(missing), added: missing };
        const refused = (status: number) => ({ changed: Array(3).fill(status), optOuts: status, lifted: status });
        // Opt-outs may then be listed for the whole partner, which these users don't see.
        const optOuts = ['tied', 'staff in account'].includes(viewer) ? 403 : 200;
        const changed = isAdministrator(viewer) ? { changed: [200, 200, 200], optOuts, lifted: 204 } : refused(403);
        const outOfScope = refused(isAdministrator(viewer) ? missing : 403);
        expect(outcomes).to.deep.equal(expectedFor(places, campaignsByWho[viewer], { ...seen, ...changed }, { ...unseen, ...outOfScope }));
      });

      const ownsPartner = ['partner', 'staff in partner'].includes(viewer);
      it(`${viewer} ${ownsPartner ? 'sees and changes' : 'neither sees nor changes'} the calling hours, numbers and do-not-call list of the partner itself`, async () => {
        const { id, phone } = await addEntry({ accountId: null, partnerId: at.tenants.partner.id });
        const listed = await ask('GET', `${at.core.url}/console/do-not-call?search=${encodeURIComponent(phone)}`, as(viewer));
        expect(listed.text.includes(phone)).to.equal(ownsPartner);
        const scope = `scope=partner&id=${at.tenants.partner.id}`;
        const changed = isAdministrator(viewer) ? missing : 403;
        expect([
          await askStatus('GET', `calling-hours?${scope}`),
          await askStatus('GET', `numbers?${scope}`),
          await askStatus('POST', 'do-not-call', { phones: [somePhone()], reason: 'asked', partnerId: at.tenants.partner.id }),
          await askStatus('PUT', `calling-hours?${scope}`, { rules: [] }),
          await askStatus('PUT', `numbers?${scope}`, { countries: null, kinds: null }),
          await askStatus('DELETE', `do-not-call/${id}`, { reason: 'Test' }),
        ]).to.deep.equal(ownsPartner ? [200, 200, 201, 200, 200, 204] : [missing, missing, missing, changed, changed, changed]);
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
