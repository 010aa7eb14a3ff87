import type { Locator, Page } from 'playwright-core';
import type { Clock } from '../../core/domain/ports.ts';
import { type CoreHarness, openCore } from './core.ts';
import { type LaunchOptions, launchConsole, type RunningConsole } from './electron.ts';
import type { EnginePage } from './engine-page.ts';
import { createKeyOn } from './sample-data.ts';
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

/** Whether the sign-in form has a field for the server's address, as in the app. A page in a browser already knows its server. */
export async function asksForServer(page: EnginePage): Promise<boolean> {
  return (await page.evaluate('callkey.capabilities.choosesServer')) === true;
}

/** Clicks a button even if a dialog covers it. When a list reloads, it may have opened that dialog just before. */
export async function clickUnderDialog(page: Pick<EnginePage, 'evaluate'>, name: string): Promise<void> {
  await page.evaluate(`[...document.querySelectorAll('button')].find(({ textContent }) => textContent === '${name}')?.click()`);
}

/** Presses *Try again*, unless the console has already tried again by itself. */
export async function tryAgain(page: Pick<EnginePage, 'evaluate'>): Promise<void> {
  await clickUnderDialog(page, 'Try again');
}
