import { sessionSchema } from '#contract/console/session.ts';
import { type FakeClock, fakeClock } from './clock.ts';
import type { DatabaseKind } from './databases.ts';
import type { Person } from './oidc-provider.ts';
import { openWithProvider, type ProviderHarness } from './provider-harness.ts';
import type { TestBrowser } from './test-browser.ts';

/** Ada at the provider, who signs in unless a test changes that. */
export const ada: Person = { subject: 'ada-at-the-provider', email: 'ada@example.com', isVerified: true };

/** Opens a core with a provider before the tests of a suite. Each test begins without links and sessions. */
export function providerSuite(kind: DatabaseKind = 'sqlite') {
  let harness: ProviderHarness;
  let clock: FakeClock;
  before(async () => {
    clock = fakeClock(new Date().toISOString());
    harness = await openWithProvider({ kind, clock });
  });
  after(() => harness.close());
  beforeEach(() => {
    clock.set(new Date().toISOString());
    Object.assign(harness.provider, { person: ada, forgery: {}, intercept: () => false });
  });
  afterEach(async () => {
    const { write } = harness.direct.storage.database;
    for (const table of ['oidc_links', 'sessions', 'sign_in_attempts'] as const) await write(table).delete();
  });

  const session = (browser: TestBrowser) => browser.open(`${harness.url}/console/session`);
  return {
    get harness() {
      return harness;
    },
    get clock() {
      return clock;
    },
    session,
    links: () => harness.direct.ports.stores.links,
    emailIn: async (browser: TestBrowser) => sessionSchema.parse((await session(browser)).json).viewer.email,
  };
}
