import { type FakeClock, fakeClock } from './clock.ts';
import { type CoreHarness, openCore } from './core-harness.ts';
import type { DatabaseKind } from './databases.ts';
import { ask } from './http.ts';

/** Opens a core before the tests of a suite, and closes it after them. @returns functions that sign users in there */
export function sessionSuite(kind: DatabaseKind = 'sqlite') {
  let harness: CoreHarness;
  let clock: FakeClock;
  before(async () => {
    clock = fakeClock();
    harness = await openCore({ kind, clock, environment: { TRUSTED_PROXIES: '127.0.0.1' } });
  });
  after(() => harness.close());

  const session = (cookie: string) => ask('GET', `${harness.core.url}/console/session`, { cookie });
  const tryPassword = (email: string, attempt: string, headers: Record<string, string> = {}, cookie?: string) =>
    ask('POST', `${harness.core.url}/console/session`, {
      body: { email, password: attempt },
      headers,
      ...(cookie === undefined ? {} : { cookie }),
    });
  return {
    get core() {
      return harness.core;
    },
    get database() {
      return harness.database;
    },
    get direct() {
      return harness.direct;
    },
    get tenants() {
      return harness.tenants;
    },
    get clock() {
      return clock;
    },
    ...{ session, tryPassword },
  };
}
