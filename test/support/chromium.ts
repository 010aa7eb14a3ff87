import { type Browser, type ConsoleMessage, chromium, type Page } from 'playwright-core';
import { rootArgs } from './electron-runtime.ts';
import { describeUnless, findProgram } from './skip.ts';
import { buildWebConsole } from './web-build.ts';

const { CHROMIUM_PATH } = process.env;
/** The headless shell is the same engine without the browser's window, which takes up to half of the processor time if each test opens one. */
const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const executablePath = findProgram(...(CHROMIUM_PATH ? [CHROMIUM_PATH] : names));

let browser: Browser | undefined;

/**
 * Runs tests in a real Chromium that is shared within a file. Without Chromium, they're skipped with the reason, or fail if they're
 * required.
 */
export function describeBrowser(title: string, tests: () => void): void {
  describeUnless(executablePath === undefined ? 'Chromium is neither on the PATH nor at CHROMIUM_PATH' : undefined, title, () => {
    before(buildWebConsole);
    after(async () => {
      await browser?.close();
      browser = undefined;
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
  page.on('console', (message: ConsoleMessage) => {
    if (/Content Security Policy|Trusted ?(?:Type|HTML|Script)|autofocus/i.test(message.text())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return complaints;
}
