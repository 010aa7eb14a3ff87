import type { Locator, Page } from 'playwright-core';
import type { Clock } from '../../core/domain/ports/environment.ts';
import { type CoreHarness, openCore } from './core-harness.ts';
import { type LaunchOptions, launchConsole, type RunningConsole } from './electron.ts';
import type { EnginePage } from './engine-page.ts';
import { createKeyOn } from './sample-data.ts';
import { password, type Tenants } from './tenants.ts';

/** A core with tenants, and a console where no one is signed in. */
export type ConsoleHarness = CoreHarness & { desktop: RunningConsole; page: Page };

export async function openConsole({ clock, ...launch }: { clock?: Clock } & LaunchOptions = {}): Promise<ConsoleHarness> {
  return openHarness(await launchConsole(launch), clock, ({ close }) => close());
}

/**
 * Shares a console between the tests of a group: the first one starts Electron, and the others find it signed out with its page reloaded.
 * Each has its own core. The main process keeps what it remembers between sessions: the sign-in form shows the previous test's server and
 * email address.
 */
export function sharedConsole(launch: LaunchOptions = {}): (clock?: Clock) => Promise<ConsoleHarness> {
  let shared: RunningConsole | undefined;
  after(() => shared?.close());
  return async (clock) => {
    shared ??= await launchConsole(launch);
    return openHarness(shared, clock, async (desktop) => {
      if (await isSignedOutAgain(desktop)) return;
      shared = undefined;
      await desktop.close();
    });
  };
}

/** @returns false if the test has closed the console or left it in a state that it can't return from */
async function isSignedOutAgain({ page }: RunningConsole): Promise<boolean> {
  try {
    await page.evaluate('Promise.all([callkey.dismissSecret(), callkey.signOut()]).then(() => undefined)');
    // The next test doesn't begin at the address where this one ended.
    await page.evaluate("history.replaceState(null, '', '#')");
    // Nor with the colors and the number of rows that this one chose.
    await page.evaluate('localStorage.clear()');
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

/** Creates keys with these names, the first one newest, and signs in a user who can see them. */
export async function openWithKeys(harness: ConsoleHarness, names: readonly string[], user: UserName = 'account'): Promise<void> {
  for (const [index, name] of names.entries())
    await createKeyOn(harness, harness.tenants.users.account, name, { on: `2026-0${9 - index}-01T08:00:00.000Z` });
  await signInAs(harness, user);
  await harness.page.getByRole('grid').waitFor();
}

/** Waits until the element has the focus. */
export function untilFocused(element: Locator): Promise<void> {
  return element.and(element.page().locator(':focus')).waitFor();
}

/** The app has this field; a browser's page already knows its server. */
export async function asksForServer(page: EnginePage): Promise<boolean> {
  return (await page.evaluate('callkey.capabilities.choosesServer')) === true;
}

/** Presses *Try again*, unless the console has already tried again by itself. */
export async function tryAgain(page: Pick<EnginePage, 'evaluate'>): Promise<void> {
  await page.evaluate("[...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Try again')?.click()");
}
