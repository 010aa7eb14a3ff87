import type { ElectronApplication, Page } from 'playwright-core';
import type { Command } from '../../desktop/ipc.ts';
import { describeBrowser, sharedBrowser } from './chromium.ts';
import { chooseCommand, describeDesktop, launchConsole } from './electron.ts';
import type { EnginePage } from './engine-page.ts';

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

/**
 * The two places where the screens are shown: the name, the function that groups the tests, and the function that opens the console there.
 */
export const homes = [
  ['in a browser', describeBrowser, openInChromium],
  ['in Electron', describeDesktop, openInElectron],
] as const;
