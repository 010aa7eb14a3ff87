import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { describeBrowser, sharedBrowser } from '../support/browser.ts';
import { signInAs } from '../support/console-harness.ts';
import { type CoreHarness, openCore } from '../support/core.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { eventually } from '../support/until.ts';

describeBrowser('an idle page', () => {
  let harness: CoreHarness;
  let context: BrowserContext;
  let page: Page;
  beforeEach(async () => {
    harness = await openCore();
    await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
    context = await (await sharedBrowser()).newContext({ viewport: { width: 1280, height: 420 } });
    page = await context.newPage();
  });
  afterEach(async () => {
    await context.close();
    await harness.close();
  });

  const row = (name: string) => page.getByRole('row', { name });
  async function open(): Promise<void> {
    await page.goto(harness.core.url);
    await signInAs({ ...harness, page }, 'account');
    await row('Practice software').waitFor();
  }

  it('refreshes its list when the user returns to the window', async () => {
    await page.clock.install();
    await open();
    await createKeyOn(harness, harness.tenants.users.account, 'Created later');
    // The list is now old enough to refresh. No timer runs from here on.
    await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 6_000);
    // Repeated, because if a refresh was in progress, the user's return doesn't start another refresh. Not too often, because each replaces the
    // one before.
    await eventually(async () => {
      await page.evaluate(() => window.dispatchEvent(new Event('focus')));
      await row('Created later').waitFor({ timeout: 5_000 });
    });
  });

  it("doesn't run a timer every second, whether it shows the sign-in form or a list", async () => {
    await page.clock.install();
    await page.addInitScript(() => {
      const counted = window as unknown as { runs: number };
      counted.runs = 0;
      for (const name of ['setTimeout', 'setInterval', 'requestAnimationFrame'] as const) {
        const original = Reflect.get(window, name) as (run: (...args: unknown[]) => void, ...rest: unknown[]) => number;
        Reflect.set(window, name, (run: (...args: unknown[]) => void, ...rest: unknown[]) =>
          original(
            (...args) => {
              counted.runs += 1;
              run(...args);
            },
            ...rest,
          ),
        );
      }
    });
    const runsInAMinute = async () => {
      // A request that's still open would seem to have timed out, and be repeated every few seconds.
      await page.waitForLoadState('networkidle');
      await page.evaluate('runs = 0');
      await page.clock.runFor(60_000);
      return Number(await page.evaluate('runs'));
    };
    await page.goto(harness.core.url);
    await page.getByLabel('Email').waitFor();
    expect(await runsInAMinute()).to.be.below(10);
    await open();
    expect(await runsInAMinute()).to.be.below(50);
  });

  it('shows the tooltip of an element focused with Tab, even if that scrolls the page', async () => {
    await open();
    await row('Practice software').click();
    const panel = page.getByRole('complementary');
    const created = panel.getByRole('listitem').locator('time').last();
    await created.waitFor();
    await panel.getByRole('button', { name: 'Close details' }).focus();
    const isThere = () => created.evaluate((element) => element === document.activeElement);
    while (!(await isThere())) await page.keyboard.press('Tab');
    // The scroll event comes with the next frame.
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
    expect(await page.locator('.page').evaluate((element) => element.scrollTop)).to.be.above(0);
    expect(await page.getByRole('tooltip').isVisible()).to.equal(true);
  });
});
