import { callsSchema } from '#contract/console/calls.ts';
import { checkedNumberSchema } from '#contract/protection/protection.ts';
import { plus } from '../../core/domain/instant.ts';
import { fakeClock } from './clock.ts';
import { openCore } from './core.ts';
import type { DatabaseKind } from './databases.ts';
import { ask, textAt } from './http.ts';
import { openOnce } from './suites.ts';
import { createKey, onDemand, placeCall, signIn } from './tenants.ts';
import { until } from './until.ts';

/** Opens a core before the tests of a suite, where each user is signed in and has a key, and each campaign has a call. */
export function tenancySuite(kind: DatabaseKind) {
  const cookies = new Map<string, string>();
  const keys = new Map<string, { id: string; keyValue: string }>();
  const calls = new Map<Place, string>();
  const getKey = (who: string) => keys.get(who) ?? { id: '', keyValue: '' };

  const harness = openOnce(() => openCore({ kind }));
  before(async () => {
    const { core, tenants } = harness;
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

  return Object.assign(harness, { cookies, calls, getKey, as: (who: string) => ({ cookie: cookies.get(who) ?? '' }) });
}

export const everyone = [
  'account',
  'teammate',
  'sibling',
  'partner',
  'tied',
  'other',
  'otherPartner',
  'staff in account',
  'staff in partner',
] as const;
export type Who = (typeof everyone)[number];

/** Whose keys each viewer can see and revoke. Each key is named after its creator. */
export const sees: Record<Who | 'staff', Who[]> = {
  account: ['account'],
  teammate: ['teammate'],
  sibling: ['sibling'],
  // Every user under the partner, and staff who created their key in the partner or in one of its accounts.
  partner: ['account', 'teammate', 'sibling', 'partner', 'tied', 'staff in account', 'staff in partner'],
  // Created by anyone in the account that the user is limited to.
  tied: ['account', 'teammate', 'tied', 'staff in account'],
  other: ['other'],
  otherPartner: ['other', 'otherPartner'],
  'staff in account': ['account', 'teammate', 'tied', 'staff in account'],
  'staff in partner': ['account', 'teammate', 'sibling', 'partner', 'tied', 'staff in account', 'staff in partner'],
  staff: [],
};

export const places = ['campaign', 'siblingCampaign', 'otherCampaign'] as const;
export type Place = (typeof places)[number];

/** The campaigns that each key has access to. */
export const reaches: Record<Who, Place[]> = {
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

export const berlin = '+4930200000';

/** Opens a core before the tests of a suite. Each test begins without rules and calls. */
export function callingRules(kind: DatabaseKind) {
  // 20:00 in Berlin, on a Saturday.
  const start = '2026-11-21T19:00:00.000Z';
  const clock = fakeClock(start);
  let key: string;
  let cookie: string;
  /** Removes the rules that the current test has set, by what and where they are. */
  const removals = new Map<string, () => Promise<unknown>>();

  const harness = openOnce(() => openCore({ kind, clock }));
  before(async () => {
    cookie = await signIn(harness.core.url, 'pat@example.com');
    key = (await createKey(harness.core.url, cookie)).keyValue;
  });
  afterEach(async () => {
    clock.set(start);
    for (const table of ['calls', 'do_not_call'] as const) await harness.direct.storage.database.write(table).delete();
    for (const remove of removals.values()) await remove();
    removals.clear();
  });

  const formatUrl = (what: string, scope: 'campaign' | 'account' | 'partner') =>
    `${harness.core.url}/console/${what}?scope=${scope}&id=${harness.tenants[scope].id}`;
  /** Waits until the calls held before are due, because otherwise calls that are placed next would be made due, too. */
  const setHours = async (rules: object[], scope: 'campaign' | 'account' | 'partner' = 'account') => {
    removals.set(`hours ${scope}`, () => setHours([], scope));
    const answer = await ask('PUT', formatUrl('calling-hours', scope), { cookie, body: { rules } });
    const changed = () => harness.direct.storage.database.write('protection_rules').whereNotNull('changed').first();
    if (!(await until(async () => (await changed()) === undefined, 15_000))) throw new Error("The core hasn't made the held calls due.");
    return answer;
  };
  const setNumbers = (rules: object, scope: 'account' | 'partner' = 'account') => {
    removals.set(`numbers ${scope}`, () => setNumbers({ countries: null, kinds: null }, scope));
    return ask('PUT', formatUrl('numbers', scope), { cookie, body: rules });
  };
  const place = (body: object = {}, phone = berlin) =>
    placeCall(harness.core.url, harness.tenants.campaign.id, key, { contact: { phone }, ...body });
  const check = async (phone: string, more: object = {}, as = cookie) => {
    const body = { phone, campaignId: harness.tenants.campaign.id, ...more };
    return checkedNumberSchema.parse((await ask('POST', `${harness.core.url}/console/numbers/check`, { cookie: as, body })).json);
  };
  const claim = () => harness.direct.ports.stores.dialing.claim(10, 'webhook', clock.now(), plus(clock.now(), 30_000));
  const listed = async () => {
    const { json } = await ask('GET', `${harness.core.url}/console/calls`, { cookie });
    return callsSchema.parse(json).calls.map(({ state, heldUntil, heldZone, detail }) => ({ state, heldUntil, heldZone, detail }));
  };
  return {
    get cookie() {
      return cookie;
    },
    ...{ harness, clock, formatUrl, setHours, setNumbers, place, check, claim, listed },
    cancel: (requestId: string) =>
      ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/by-request-id/${requestId}`, { key }),
  };
}
