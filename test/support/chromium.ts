import { spawnSync } from 'node:child_process';
import { type Browser, chromium } from 'playwright-core';
import { rootArgs } from './electron-runtime.ts';
import { buildWebConsole } from './web-build.ts';

const { CHROMIUM_PATH, CALLKEY_REQUIRE_DESKTOP } = process.env;
const names = CHROMIUM_PATH ? [CHROMIUM_PATH] : ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
/** The tests don't download a browser. */
const executablePath = names
  .map((name) => spawnSync('sh', ['-c', 'command -v "$0"', name], { encoding: 'utf8' }).stdout?.trim() ?? '')
  .find((path) => path !== '');

let browser: Browser | undefined;

/**
 * Tests in a real Chromium that is shared within a file. Without Chromium, they're skipped with the reason, or fail if they're required.
 */
export function describeBrowser(title: string, tests: () => void): void {
  describe(title, function (this: Mocha.Suite) {
    this.timeout(60_000);
    if (executablePath !== undefined) {
      before(buildWebConsole);
      after(async () => {
        await browser?.close();
        browser = undefined;
      });
      tests();
    } else if (CALLKEY_REQUIRE_DESKTOP === '1') {
      it('is tested', () => {
        throw new Error('The desktop tests are required, but there is no Chromium.');
      });
    } else it.skip('is not tested: there is no Chromium on the PATH or at CHROMIUM_PATH');
  });
}

export async function sharedBrowser(): Promise<Browser> {
  if (executablePath === undefined) throw new Error('There is no Chromium.');
  browser ??= await chromium.launch({ executablePath, args: [...rootArgs, '--host-resolver-rules=MAP *.callkey.test 127.0.0.1'] });
  return browser;
}
