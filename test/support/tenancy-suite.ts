import { type CoreHarness, openCore } from './core-harness.ts';
import type { DatabaseKind } from './databases.ts';
import { ask, textAt } from './http.ts';
import { emails, everyone, type Place, places, reaches } from './tenancy-rules.ts';
import { createKey, placeCall, signIn } from './tenants.ts';

/** Opens a core before the tests of a suite, where each user is signed in and has a key, and each campaign has a call. */
export function tenancySuite(kind: DatabaseKind) {
  let harness: CoreHarness;
  const cookies = new Map<string, string>();
  const keys = new Map<string, { id: string; keyValue: string }>();
  const calls = new Map<Place, string>();
  const getKey = (who: string) => keys.get(who) ?? { id: '', keyValue: '' };

  before(async () => {
    harness = await openCore({ kind });
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
  after(() => harness.close());

  return {
    get core() {
      return harness.core;
    },
    get direct() {
      return harness.direct;
    },
    get tenants() {
      return harness.tenants;
    },
    ...{ cookies, calls, getKey },
    as: (who: string) => ({ cookie: cookies.get(who) ?? '' }),
  };
}
