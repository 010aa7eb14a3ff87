import { callsSchema } from '#contract/console/calls.ts';
import { checkedNumberSchema } from '#contract/protection/protection.ts';
import { plus } from '../../core/domain/instant.ts';
import { fakeClock } from './clock.ts';
import { type CoreHarness, openCore } from './core-harness.ts';
import type { DatabaseKind } from './databases.ts';
import { ask } from './http.ts';
import { createKey, onDemand, placeCall, signIn } from './tenants.ts';

const every = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
export const daily = (from: string, to: string, prefix = '') => ({ prefix, days: every, from, to });
export const berlin = '+4930200000';

/** Opens a core before the tests of a suite. Each test begins without rules and calls. */
export function callingRules(kind: DatabaseKind) {
  const clock = fakeClock();
  let harness: CoreHarness;
  let key: string;
  let cookie: string;

  before(async () => {
    harness = await openCore({ kind, clock, environment: { DIALER: 'off' } });
  });
  after(() => harness.close());
  beforeEach(async () => {
    // 20:00 in Berlin, on a Saturday.
    clock.set('2026-11-21T19:00:00.000Z');
    cookie = await signIn(harness.core.url, 'pat@example.com');
    key ??= (await createKey(harness.core.url, cookie)).keyValue;
    for (const table of ['calls', 'do_not_call'] as const) await harness.direct.storage.database.write(table).delete();
    for (const scope of ['campaign', 'account', 'partner'] as const) {
      await setHours([], scope);
      if (scope !== 'campaign') await setNumbers({ countries: null, kinds: null }, scope);
    }
  });

  const formatUrl = (what: string, scope: 'campaign' | 'account' | 'partner') =>
    `${harness.core.url}/console/${what}?scope=${scope}&id=${harness.tenants[scope].id}`;
  const setHours = (rules: object[], scope: 'campaign' | 'account' | 'partner' = 'account') =>
    ask('PUT', formatUrl('calling-hours', scope), { cookie, body: { rules } });
  const setNumbers = (rules: object, scope: 'account' | 'partner' = 'account') =>
    ask('PUT', formatUrl('numbers', scope), { cookie, body: rules });
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
    get harness() {
      return harness;
    },
    get cookie() {
      return cookie;
    },
    ...{ clock, formatUrl, setHours, setNumbers, place, check, claim, listed },
    cancel: (requestId: string) =>
      ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/by-request-id/${requestId}`, { key }),
  };
}
