import type { Locator, Page } from 'playwright-core';
import type { Clock } from '../../core/domain/ports.ts';
import type { FakeClock } from './clock.ts';
import { type CoreHarness, openCore } from './core.ts';
import { type LaunchOptions, launchConsole, type RunningConsole } from './electron.ts';
import { password, type Tenants } from './tenants.ts';

/** A core with tenants, and a console where no one is signed in. */
export type ConsoleHarness = CoreHarness & { desktop: RunningConsole; page: Page };

export async function openConsole({ clock, ...launch }: { clock?: Clock } & LaunchOptions = {}): Promise<ConsoleHarness> {
  return openHarness(await launchConsole(launch), clock, ({ close }) => close());
}

/** Shares a console between the tests of a group, as `sharedDesktop` does. Each test has its own core. */
export function sharedConsole(launch: LaunchOptions = {}): (clock?: Clock) => Promise<ConsoleHarness> {
  const { open, leave } = sharedDesktop(launch);
  return async (clock) => openHarness(await open(), clock, leave);
}

type SharedDesktop = { open(): Promise<RunningConsole>; leave(desktop: RunningConsole): Promise<void> };

/**
 * Shares an app between the tests of a group: the first one starts Electron, and the others find its page reloaded, with no server, session
 * or setting from before.
 */
export function sharedDesktop(launch: LaunchOptions = {}): SharedDesktop {
  let shared: RunningConsole | undefined;
  after(() => shared?.close());
  return {
    async open() {
      shared ??= await launchConsole(launch);
      return shared;
    },
    async leave(desktop) {
      if (await isLikeNew(desktop)) return;
      shared = undefined;
      await desktop.close();
    },
  };
}

/** Runs in the page. Forgets one server after another, because the app stores all of them in one list. */
const forgetEverything = `(async () => {
  await callkey.dismissSecret();
  for (const { address } of await callkey.listServers()) await callkey.forgetServer(address);
  localStorage.clear();
  history.replaceState(null, '', '#');
})()`;

/** @returns false if the test has closed the console or left it in a state that it can't return from */
async function isLikeNew({ page }: RunningConsole): Promise<boolean> {
  try {
    await page.evaluate(forgetEverything);
    await page.reload({ waitUntil: 'domcontentloaded', timeout: 5_000 });
    return true;
  } catch {
    return false;
  }
}

async function openHarness(
  desktop: RunningConsole,
  clock: Clock | undefined,
  leave: (desktop: RunningConsole) => Promise<void>,
): Promise<ConsoleHarness> {
  const served = await openCore({ clock });
  return {
    ...served,
    desktop,
    page: desktop.page,
    async close() {
      await leave(desktop);
      await served.close();
    },
  };
}

export type UserName = keyof Tenants['users'];

/** Signs in through the form, in the app or in a browser, and waits for the home screen. */
export async function signInAs(
  { core, tenants, page }: Pick<ConsoleHarness, 'core' | 'tenants'> & { page: EnginePage },
  user: UserName,
): Promise<void> {
  const email = page.getByLabel('Email');
  await email.waitFor();
  if (await asksForServer(page)) await page.getByLabel('Server address').fill(core.url);
  await email.fill(tenants.users[user].email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'API keys', exact: true }).waitFor();
}

/** Finds elements by their exact names, or rows and dialogs by a part of them, on a page that may be another one in each test. */
export function finders(page: () => Page) {
  return {
    button: (name: string | RegExp) => page().getByRole('button', { name, exact: true }),
    link: (name: string) => page().getByRole('link', { name, exact: true }),
    heading: (name: string) => page().getByRole('heading', { name, exact: true }),
    row: (name: string | RegExp) => page().getByRole('row', { name }),
    dialog: (name = '') => page().getByRole('dialog', { name }).or(page().getByRole('alertdialog', { name })),
    /** The details of a row. */
    panel: () => page().getByRole('complementary'),
  };
}

/** Waits until the element has the focus. */
export function untilFocused(element: Locator): Promise<void> {
  return element.and(element.page().locator(':focus')).waitFor();
}

/** Whether the sign-in form has a field for the server's address, as in the app. A page in a browser already knows its server. */
export async function asksForServer(page: EnginePage): Promise<boolean> {
  return (await page.evaluate('callkey.capabilities.choosesServer')) === true;
}

/** Opens the form for a new key, and fills it in. */
export async function fillInKey(page: EnginePage, name: string, expiration = '1 Year'): Promise<void> {
  await page.getByRole('button', { name: 'Create API key' }).first().click();
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByRole('radio', { name: expiration, exact: true }).check();
}

/** Clicks a button even if a dialog covers it. When a list reloads, it may have opened that dialog just before. */
export async function clickUnderDialog(page: Pick<EnginePage, 'evaluate'>, name: string): Promise<void> {
  await page.evaluate(`[...document.querySelectorAll('button')].find(({ textContent }) => textContent === '${name}')?.click()`);
}

/** Presses *Try again*, unless the console has already tried again by itself. */
export async function tryAgain(page: Pick<EnginePage, 'evaluate'>): Promise<void> {
  await clickUnderDialog(page, 'Try again');
}

type Named = { name?: string | RegExp; exact?: boolean };
type Exact = { exact?: boolean };
type Role = Parameters<Page['getByRole']>[0];

type Finder = {
  getByRole(role: Role, options?: Named): EngineLocator;
  getByLabel(text: string, options?: Exact): EngineLocator;
  getByText(text: string | RegExp, options?: Exact): EngineLocator;
  locator(selector: string): EngineLocator;
};

/** The part of Playwright's locators that the tests of all engines use. `test/desktop/engines/page.ts` implements it for other engines. */
export type EngineLocator = Finder & {
  first(): EngineLocator;
  last(): EngineLocator;
  waitFor(options?: { state?: 'visible' | 'detached' }): Promise<void>;
  click(): Promise<void>;
  check(): Promise<void>;
  fill(text: string): Promise<void>;
  focus(): Promise<void>;
  selectOption(label: string): Promise<unknown>;
  inputValue(): Promise<string>;
};

/** The part of Playwright's page that these tests use. */
export type EnginePage = Finder & {
  keyboard: { press(key: string): Promise<void> };
  /** Evaluates an expression in the page. */
  evaluate(expression: string): Promise<unknown>;
  setViewportSize(size: { width: number; height: number }): Promise<void>;
};

/**
 * Makes a partner user's page show one-time passwords in both possible ways: by creating a user named Canary, and by resetting that user's
 * password. Closes each dialog, then visits several screens.
 *
 * @returns the passwords
 */
export async function showOneTimePasswords(page: Page, account: string): Promise<string[]> {
  const { link, button } = finders(() => page);
  const shown = async () => {
    const password = await page.getByLabel('One-time password').inputValue();
    await button("I've Saved It").click();
    await page.getByLabel('One-time password').waitFor({ state: 'detached' });
    return password;
  };
  await link('Users').click();
  await button('Create user').click();
  await page.getByLabel('Name', { exact: true }).fill('Canary');
  await page.getByLabel('Email', { exact: true }).fill('canary@example.com');
  await page.getByLabel('Account', { exact: true }).selectOption(account);
  await page.getByRole('dialog').getByRole('button', { name: 'Create user' }).click();
  const first = await shown();
  await page.getByRole('row', { name: 'canary@example.com' }).click();
  await button('More').click();
  await button('Reset password…').click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Reset password' }).click();
  const second = await shown();
  for (const screen of ['Activity', 'API keys', 'Users']) await link(screen).click();
  await page.getByRole('row', { name: 'canary@example.com' }).waitFor();
  return [first, second];
}

export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
export const home = (page: Page) => page.getByRole('heading', { name: 'API keys', exact: true }).waitFor();
export const passTime = (clock: FakeClock) => clock.advance({ seconds: 60 });

export async function enterPassword(page: Page, email?: string): Promise<void> {
  if (email !== undefined) await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await button(page, 'Sign in').click();
}

export async function enterCode(page: Page, code: string): Promise<void> {
  await page.getByLabel('Code', { exact: true }).fill(code);
  await button(page, 'Sign in').click();
}
