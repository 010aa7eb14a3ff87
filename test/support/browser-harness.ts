import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { sharedBrowser, watch } from './chromium.ts';
import { signInAs, type UserName } from './console-harness.ts';
import { type CoreHarness, openCore } from './core.ts';
import { type Home, openInChromium } from './homes.ts';
import { type FaultyProxy, faultyProxy } from './proxies.ts';
import { createKeyOn } from './sample-data.ts';
import { signIn } from './tenants.ts';

/** Returns a core with a key, and for each test a page in a new browser profile. A test fails if its page warns or throws an error. */
export function browserForEach() {
  let harness: CoreHarness;
  let context: BrowserContext;
  let page: Page;
  let complaints: string[];

  before(async () => {
    harness = await openCore();
    await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
  });
  after(() => harness.close());
  async function openProfile(timezoneId = 'Europe/Berlin'): Promise<void> {
    context = await (await sharedBrowser()).newContext({ timezoneId, locale: 'en-GB' });
    page = await context.newPage();
    complaints = watch(page);
  }
  beforeEach(() => openProfile());
  afterEach(async () => {
    expect(complaints).to.deep.equal([]);
    await context.close();
  });

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const link = (name: string) => page.getByRole('link', { name, exact: true });
  const heading = (name: string) => page.getByRole('heading', { name, exact: true });
  const sessions: Partial<Record<UserName, string>> = {};
  /** Replaces the session in the profile's cookies, as another tab does when someone signs in there. */
  async function useSession(user: UserName, address = harness.core.url): Promise<void> {
    const cookies = sessions[user] ?? (await signIn(harness.core.url, harness.tenants.users[user].email));
    sessions[user] = cookies;
    const pairs = cookies.split('; ').map((pair) => pair.split('=', 2));
    await context.addCookies(pairs.map(([name = '', value = '']) => ({ name, value, url: address })));
  }
  return {
    get harness() {
      return harness;
    },
    get context() {
      return context;
    },
    get page() {
      return page;
    },
    /** The page's warnings and errors. */
    get complaints() {
      return complaints;
    },
    button,
    link,
    heading,
    /** Replaces the profile with one in this time zone. */
    async moveTo(timezoneId: string): Promise<void> {
      await context.close();
      await openProfile(timezoneId);
    },
    /** Opens the list of calls and then that of API keys, so that going back leads to the calls. */
    async goHomeFromCalls(): Promise<void> {
      await link('Calls').click();
      await heading('Calls').waitFor();
      await link('API keys').click();
      await heading('API keys').waitFor();
    },
    async signInOnForm(user: 'account' | 'staff', address = harness.core.url): Promise<void> {
      await page.goto(address);
      await signInAs({ ...harness, page }, user);
    },
    useSession,
    /** Opens the page with a session that several tests share, so tests must not sign out of it. */
    async open(address = harness.core.url, user: UserName = 'account'): Promise<void> {
      await useSession(user, address);
      await page.goto(address);
      await page.getByRole('navigation').waitFor();
    },
    /** The page itself can't read the clipboard, so another page does. */
    async clipboardText(): Promise<string> {
      const other = await context.newPage();
      await other.route('**/*', (route) => route.fulfill({ body: '' }));
      await other.goto(harness.core.url);
      return other.evaluate('navigator.clipboard.readText()');
    },
    /** Creates a key on the screen. @returns its value */
    async createKey(): Promise<string> {
      await button('Create API key').click();
      await page.getByLabel('Name', { exact: true }).fill('Canary');
      await page.getByRole('radio', { name: '1 Year', exact: true }).check();
      await button('Create Key').click();
      await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
      return page.getByLabel('Key value').inputValue();
    },
  };
}

/** Returns a core, and a page that all tests of a suite share, in which a partner is signed in. @param fill adds data to the core */
export function browserForAll(fill: (harness: CoreHarness) => Promise<void>) {
  let harness: CoreHarness;
  let network: FaultyProxy;
  let home: Home;
  before(async () => {
    harness = await openCore({ environment: { DIALER: 'off' } });
    network = await faultyProxy(harness.core.url);
    await fill(harness);
    home = await openInChromium(network.url);
    await signInAs({ ...harness, page: home.page, core: { ...harness.core, url: network.url } }, 'partner');
  });
  after(async () => {
    await home?.close();
    await network?.close();
    await harness?.close();
  });

  const page = () => home.page;
  const link = (name: string) => page().getByRole('link', { name, exact: true });
  return {
    get harness() {
      return harness;
    },
    get network() {
      return network;
    },
    page,
    link,
    button: (name: string) => page().getByRole('button', { name, exact: true }),
    resize: (width: number) => page().setViewportSize({ width, height: 800 }),
    async goTo(screen: string): Promise<void> {
      await link(screen).click();
      await page().getByRole('heading', { name: screen, exact: true }).waitFor();
    },
  };
}
