import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import type { AxeResults } from 'axe-core';
import { expect } from 'chai';
import {
  type Browser,
  type BrowserContext,
  type ConsoleMessage,
  chromium,
  type ElectronApplication,
  type Page,
  type Request,
} from 'playwright-core';
import type { Clock } from '../../core/domain/ports.ts';
import type { Command } from '../../desktop/ipc.ts';
import type { ScreenName } from '../../desktop/screens.ts';
import { rootArgs } from '../../scripts/support/electron-runtime.ts';
import { afterEachFile } from './clean-up.ts';
import { buildWebConsole } from './commands.ts';
import { type EnginePage, fillInKey, finders, signInAs, type UserName } from './console-harness.ts';
import { type CoreHarness, openCore } from './core.ts';
import { chooseCommand, launchConsole } from './electron.ts';
import { faultyProxy } from './proxies.ts';
import { createKeyOn } from './sample-data.ts';
import { describeUnless, findProgram, openForEach, openOnce } from './suites.ts';
import { restoreForEach, signIn } from './tenants.ts';

const { CHROMIUM_PATH } = process.env;
/** The headless shell is the same engine without the browser's window, which takes up to half of the processor time if each test opens one. */
const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const executablePath = findProgram(...(CHROMIUM_PATH ? [CHROMIUM_PATH] : names));

let browser: Browser | undefined;
afterEachFile(async () => {
  await browser?.close();
  browser = undefined;
});

/** The requests of a test's pages that failed, without their queries. */
const failedRequests: string[] = [];

/**
 * Runs tests in a real Chromium that is shared within a file. Without Chromium, they're skipped with the reason, or fail if they're
 * required.
 */
export function describeBrowser(title: string, tests: () => void): void {
  describeUnless(executablePath === undefined ? 'Chromium is neither on the PATH nor at CHROMIUM_PATH' : undefined, title, () => {
    before(buildWebConsole);
    // A page that failed to load something waits for its next attempt. Without these, the error says only what it didn't show.
    afterEach(function () {
      const [failed, error] = [failedRequests.splice(0), this.currentTest?.err];
      const note = `The page's failed requests: ${failed.join(', ')}.`;
      if (error?.stack && failed.length > 0) error.stack = `${note}\n${error.stack}`;
    });
    tests();
  });
}

export async function sharedBrowser(): Promise<Browser> {
  if (executablePath === undefined) throw new Error("Chromium isn't installed.");
  browser ??= await chromium.launch({ executablePath, args: [...rootArgs, '--host-resolver-rules=MAP *.callkey.test 127.0.0.1'] });
  return browser;
}

/** Returns the browser's warnings, and the errors thrown by the page. */
export function watch(page: Page): string[] {
  const complaints: string[] = [];
  const fail = (request: Request, why: unknown) =>
    failedRequests.push(`${request.method()} ${new URL(request.url()).pathname} (${String(why)})`);
  page.on('requestfailed', (request) => fail(request, request.failure()?.errorText));
  page.on('response', (response) => response.status() >= 400 && fail(response.request(), response.status()));
  page.on('console', (message: ConsoleMessage) => {
    if (/Content Security Policy|Trusted ?(?:Type|HTML|Script)|autofocus/i.test(message.text())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return complaints;
}

/** Where the screens are shown: in the app or a browser. */
export type Home<Shown extends EnginePage = Page> = {
  page: Shown;
  /** Null if there is no menu. */
  choose: ((command: Command) => Promise<void>) | null;
  close(): Promise<void>;
};

const timeZone = 'Europe/Berlin';

export async function openInElectron(): Promise<Home & { app: ElectronApplication }> {
  const desktop = await launchConsole({ env: { TZ: timeZone } });
  const { app, page, close } = desktop;
  return { app, page, choose: (command) => chooseCommand(desktop, command), close };
}

export async function openInChromium(url: string): Promise<Home> {
  const browser = await sharedBrowser();
  // A browser with a window lets a page copy something if the user has clicked on it. The headless shell asks for permission.
  const permissions = ['clipboard-write'];
  const context = await browser.newContext({ permissions, timezoneId: timeZone, locale: 'en-GB', viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto(url);
  return { page, choose: null, close: () => context.close() };
}

/** Gives a browser profile a session, as another tab does when someone signs in there. */
export async function addSession(context: BrowserContext, cookie: string, url: string): Promise<void> {
  const pairs = cookie.split('; ').map((pair) => pair.split('=', 2));
  await context.addCookies(pairs.map(([name = '', value = '']) => ({ name, value, url })));
}

/** A core and an empty page. */
type PageHarness = CoreHarness & {
  page: Page;
  /** Opens a screen of the console on the page, or else its home screen, with a session of this user. */
  enter(user: UserName, screen?: ScreenName): Promise<void>;
};

/** A browser profile with one page, and the page's warnings and errors. */
type Profile = { context: BrowserContext; page: Page; complaints: string[] };

/** @param timezoneId undefined for the machine's */
async function openProfile(timezoneId: string | undefined): Promise<Profile> {
  const context = await (await sharedBrowser()).newContext({ ...(timezoneId && { timezoneId }), locale: 'en-GB' });
  const page = await context.newPage();
  return { context, page, complaints: watch(page) };
}

/** Returns a function that opens a screen in a profile, with a session of its own. */
function enterIn({ core, tenants }: CoreHarness, { context, page }: Profile): PageHarness['enter'] {
  return async (user, screen) => {
    await addSession(context, await signIn(core.url, tenants.users[user].email), core.url);
    await page.goto(screen ? `${core.url}/#/${screen}` : core.url);
    await page.getByRole('navigation', { name: 'Screens' }).waitFor();
  };
}

/**
 * Opens a core, and a page in a new browser profile in Berlin. Closing it fails if the page has warned or thrown an error.
 *
 * @param timezoneId undefined for the machine's
 */
export async function openPage(
  clock?: Clock,
  { timezoneId }: { timezoneId?: string } = { timezoneId: 'Europe/Berlin' },
): Promise<PageHarness> {
  const served = await openCore({ clock });
  const profile = await openProfile(timezoneId);
  return {
    ...served,
    page: profile.page,
    enter: enterIn(served, profile),
    async close() {
      await profile.context.close();
      await served.close();
      expect(profile.complaints).to.deep.equal([]);
    },
  };
}

/**
 * Shares a core, a browser profile in Berlin and its page between the tests of a suite, which takes half of the processor time. For each test,
 * the page is empty, and the profile and the database have only what they had before. A test fails if its page warns or throws an error.
 */
export function pageForEach(): PageHarness {
  const served = openOnce(() => openCore());
  restoreForEach(() => served.direct);
  const profile = profileForEach(() => served.core.url, true);
  return openForEach(async () => {
    const { current } = profile;
    return { ...served, page: current.page, enter: enterIn(served, current), close: async () => undefined };
  });
}

/**
 * Opens a browser profile for each test of a suite, or shares one: after each test, it's emptied, or closed if it can't be.
 *
 * @param url where the tests open the console
 */
export function profileForEach(url: () => string, isShared: boolean) {
  let shared: Profile | undefined;
  const current = () => {
    if (!shared) throw new Error('A profile is open only during a test.');
    return shared;
  };
  beforeEach(async () => {
    shared ??= await openProfile('Europe/Berlin');
  });
  afterEach(async () => {
    const profile = current();
    if (!isShared || !(await empty(profile, url()))) {
      shared = undefined;
      await profile.context.close();
    }
    expect(profile.complaints.splice(0)).to.deep.equal([]);
  });
  after(() => shared?.context.close());
  return {
    get current() {
      return current();
    },
    /** Replaces the profile with one in this time zone. */
    async moveTo(timezoneId: string): Promise<void> {
      await current().context.close();
      shared = await openProfile(timezoneId);
    },
  };
}

/** @returns false if the profile isn't like a new one: it keeps a fake clock until it's closed */
async function empty({ context, page }: Profile, url: string): Promise<boolean> {
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  for (const other of context.pages()) if (other !== page) await other.close();
  // A page of another site would take a new process for each test.
  await page.goto(`${url}/nothing-here`);
  await page.evaluate('localStorage.clear()');
  await context.clearCookies();
  await context.clearPermissions();
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.mouse.move(0, 0);
  return !(await page.evaluate<boolean>(`'isFake' in Date`));
}

/** Creates keys with these names, the first one newest, and opens their list as a user who can see them. */
export async function openWithKeys(harness: PageHarness, names: readonly string[], user: UserName = 'account'): Promise<void> {
  for (const [index, name] of names.entries())
    await createKeyOn(harness, harness.tenants.users.account, name, { on: `2026-0${9 - index}-01T08:00:00.000Z` });
  await harness.enter(user);
  await harness.page.getByRole('grid').waitFor();
}

/**
 * Returns a core with a key, and for each test a page in a new browser profile, or in one that the tests share. A test fails if its page
 * warns or throws an error.
 */
export function browserForEach({ isShared = false } = {}) {
  const harness = openOnce(() => openCore());
  before(() => createKeyOn(harness, harness.tenants.users.account, 'Practice software'));
  const profile = profileForEach(() => harness.core.url, isShared);
  const found = finders(() => profile.current.page);
  const { button, link, heading } = found;
  const sessions: Partial<Record<UserName, string>> = {};
  /** Replaces the session in the profile's cookies. */
  async function useSession(user: UserName, address = harness.core.url): Promise<void> {
    const cookie = sessions[user] ?? (await signIn(harness.core.url, harness.tenants.users[user].email));
    sessions[user] = cookie;
    await addSession(profile.current.context, cookie, address);
  }
  return {
    harness,
    get context() {
      return profile.current.context;
    },
    get page() {
      return profile.current.page;
    },
    /** The page's warnings and errors. */
    get complaints() {
      return profile.current.complaints;
    },
    ...found,
    moveTo: profile.moveTo,
    /** Opens the list of calls and then that of API keys, so that going back leads to the calls. */
    async goHomeFromCalls(): Promise<void> {
      await link('Calls').click();
      await heading('Calls').waitFor();
      await link('API keys').click();
      await heading('API keys').waitFor();
    },
    async signInOnForm(user: 'account' | 'staff', address = harness.core.url): Promise<void> {
      const { page } = profile.current;
      await page.goto(address);
      await signInAs({ ...harness, page }, user);
    },
    useSession,
    /** Opens the page with a session that several tests share, so tests must not sign out of it. */
    async open(address = harness.core.url, user: UserName = 'account'): Promise<void> {
      await useSession(user, address);
      const { page } = profile.current;
      await page.goto(address);
      await page.getByRole('navigation', { name: 'Screens' }).waitFor();
    },
    /** The page itself can't read the clipboard, so another page does. */
    async clipboardText(): Promise<string> {
      const other = await profile.current.context.newPage();
      await other.route('**/*', (route) => route.fulfill({ body: '' }));
      await other.goto(harness.core.url);
      return other.evaluate('navigator.clipboard.readText()');
    },
    /** Creates a key on the screen. @returns its value */
    async createKey(): Promise<string> {
      const { page } = profile.current;
      await fillInKey(page, 'Canary');
      await button('Create Key').click();
      await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
      return page.getByLabel('Key value').inputValue();
    },
  };
}

/** Returns a core, and a page that all tests of a suite share, in which a partner is signed in. @param fill adds data to the core */
export function browserForAll(fill: (harness: CoreHarness) => Promise<void>) {
  const harness = openOnce(() => openCore());
  const network = openOnce(() => faultyProxy(harness.core.url));
  const home = openOnce(() => openInChromium('about:blank'));
  before(async () => {
    await fill(harness);
    const { core, tenants } = harness;
    await addSession(home.page.context(), await signIn(core.url, tenants.users.partner.email), network.url);
    await home.page.goto(network.url);
    await home.page.getByRole('navigation', { name: 'Screens' }).waitFor();
  });

  const page = () => home.page;
  const found = finders(page);
  return {
    ...{ harness, network, page },
    ...found,
    resize: (width: number) => page().setViewportSize({ width, height: 800 }),
    async goTo(screen: string): Promise<void> {
      await found.link(screen).click();
      await found.heading(screen).waitFor();
    },
  };
}

/**
 * Moves a page's fake clock until it reads the session again. It does so every minute, but a load that the clock jumps over seems to take that
 * minute, and the page then rests for twenty.
 */
export async function untilSessionIsReadAgain(page: Page): Promise<Request> {
  await page.waitForLoadState('networkidle');
  for (;;) {
    const asked = page.waitForRequest('**/console/session', { timeout: 1_000 }).catch(() => null);
    await page.clock.fastForward(60_000);
    const request = await asked;
    if (request) return request;
  }
}

/** Waits until the page has processed all responses so far: once a later request has its response, it has. */
export async function settle(page: Page): Promise<void> {
  await page.evaluate(`callkey.request('listActivityFacets', {})`);
}

/** Holds the next response to such a request. @returns when the core has given it, and a function that delivers it to the page */
export async function holdResponse(page: Page, path: string | RegExp, method = 'GET') {
  const [answered, released, delivered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isHeld = false;
  await page.route(path, async (route) => {
    if (isHeld || route.request().method() !== method) return route.fallback();
    isHeld = true;
    const response = await route.fetch();
    answered.resolve();
    await released.promise;
    await route.fulfill({ response });
    delivered.resolve();
  });
  return {
    answered: answered.promise,
    async release(): Promise<void> {
      released.resolve();
      await delivered.promise;
      await settle(page);
    },
  };
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules whose result depends on colors. */
export const colorRules = ['color-contrast', 'link-in-text-block'] as const;

/** Returns the violations that axe finds on the page, by all of its rules or only by these. */
export async function violationsOn(page: Page, rules?: readonly string[]): Promise<string[]> {
  // A page keeps axe until it's reloaded.
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(axe);
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: rules }) };
  // The other results are a hundred times larger.
  const found = `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`;
  const violations: AxeResults['violations'] = await page.evaluate(found);
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id} at ${node.target}: ${node.failureSummary ?? ''}`));
}

/** Starts a foreign website that records its requests. */
export async function startSite() {
  const requests: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    requests.push(url);
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<title>Not ours</title>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, requests, close: () => server.close() };
}

/** Returns a snapshot of the page's heap after garbage collection. Fails unless it contains the canary that the page shows. */
export async function readHeap(page: Page): Promise<string> {
  const devtools = await page.context().newCDPSession(page);
  const chunks: string[] = [];
  devtools.on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => chunks.push(chunk));
  await devtools.send('HeapProfiler.collectGarbage');
  await devtools.send('HeapProfiler.collectGarbage');
  await devtools.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false, captureNumericValue: false });
  const snapshot = chunks.join('');
  expect(snapshot, 'the heap of the page while it shows the canary').to.include('Canary');
  return snapshot;
}
