// Measures the console in Chromium with 600 keys of 40 users: how long until the list can be used, cold and over a slow network, how long
// a keystroke in its search takes on a slow processor, and what an idle minute on each screen costs: `npm run console-speed`
import type { BrowserContext, CDPSession, Page } from 'playwright-core';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import { computeSpread, repeat } from '../../scripts/bench/spread.ts';
import { addSession, sharedBrowser } from '../support/browser.ts';
import { cleanUp } from '../support/clean-up.ts';
import { buildWebConsole } from '../support/commands.ts';
import { openCore } from '../support/core.ts';
import { addSampleData, createKeyOn } from '../support/sample-data.ts';
import { password, signIn } from '../support/tenants.ts';

const rounds = 5;
const slowNetwork = { offline: false, latency: 150, downloadThroughput: 1_600_000 / 8, uploadThroughput: 750_000 / 8 };
const idleScreens = ['api-keys', 'calls', 'users', 'activity', 'directory', 'protection'];
const minuteMs = 60_000;

function report(what: string, values: readonly number[], unit: string, goal: number): void {
  const { median, min, max } = computeSpread(values);
  const [shown, ...range] = [median, min, max].map((value) => String(Math.round(value)));
  const result = median <= goal ? 'reached' : 'missed';
  process.stdout.write(
    `${what.padEnd(44)} ${`${shown} ${unit}`.padEnd(12)} ${`(${range.join(' to ')})`.padEnd(16)} goal ${goal}: ${result}\n`,
  );
}

await buildWebConsole();
const harness = await openCore();
const browser = await sharedBrowser();
try {
  const { direct, tenants, core } = harness;
  await addSampleData(harness);
  for (let index = 0; index < 40; index++) {
    const details = {
      email: `user${index}@example.com`,
      name: `User ${index}`,
      userType: 'account',
      accountId: tenants.account.id,
      partnerId: null,
    } as const;
    const { user } = await createUser(direct.ports, operator, details, password);
    for (let key = 0; key < 15; key++) await createKeyOn(harness, user, `Integration ${index} ${key}`);
  }
  const cookie = await signIn(core.url, tenants.users.partner.email);

  /** Runs a measurement on a page in a new profile, whose cache is empty. */
  async function withPage<Result>(measure: (page: Page, devtools: CDPSession) => Promise<Result>): Promise<Result> {
    const context: BrowserContext = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    await addSession(context, cookie, core.url);
    const page = await context.newPage();
    const devtools = await context.newCDPSession(page);
    await devtools.send('Network.enable');
    return measure(page, devtools).finally(() => context.close());
  }

  /** @returns how long it took until a frame showed the rows, with their text in the page's font */
  async function openKeys(page: Page): Promise<number> {
    await page.addInitScript(() => {
      const look = () => {
        const areThere = document.querySelectorAll('tbody tr').length >= 20 && document.fonts.status === 'loaded';
        requestAnimationFrame(areThere ? () => Object.assign(window, { shownAt: performance.now() }) : look);
      };
      requestAnimationFrame(look);
    });
    await page.goto(`${core.url}/#/api-keys?size=50`);
    return Number(await (await page.waitForFunction(() => Reflect.get(window, 'shownAt'))).jsonValue());
  }

  const cold = () => withPage(openKeys);
  await cold();
  report('the list of 500 keys, with a cold cache', await repeat(rounds, cold), 'ms', 1_000);
  const slow = () =>
    withPage(async (page, devtools) => {
      await devtools.send('Network.emulateNetworkConditions', slowNetwork);
      return openKeys(page);
    });
  report('the same at 1.6 Mbit/s and 150 ms', await repeat(rounds, slow), 'ms', 2_000);

  const keystrokes = await withPage(async (page, devtools) => {
    await openKeys(page);
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 });
    await page.evaluate(() => {
      const drawn: number[] = Object.assign(window, { drawn: [] as number[] }).drawn;
      // A message sent in an animation frame arrives once that frame has been drawn.
      const onInput = ({ timeStamp }: Event) =>
        requestAnimationFrame(() => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = () => drawn.push(performance.now() - timeStamp);
          port2.postMessage(null);
        });
      document.addEventListener('input', onInput, { capture: true });
    });
    for (const [index, letter] of [...'integration 7'].entries()) {
      await page.getByLabel('Search by name').press(letter);
      await page.waitForFunction((count) => Reflect.get(window, 'drawn').length > count, index);
    }
    return page.evaluate(() => Reflect.get(window, 'drawn') as number[]);
  });
  report('a keystroke in its search, slowed four times', keystrokes, 'ms', 50);

  const idle = (screen: string) =>
    withPage(async (page, devtools) => {
      await page.goto(`${core.url}/#/${screen}`);
      await page.waitForLoadState('networkidle');
      const cost = { requests: 0, bytes: 0 };
      devtools.on('Network.loadingFinished', ({ encodedDataLength }) => {
        cost.requests += 1;
        cost.bytes += encodedDataLength;
      });
      await page.waitForTimeout(minuteMs);
      return cost;
    });
  const costs = await Promise.all(idleScreens.map(idle));
  for (const [index, screen] of idleScreens.entries()) {
    report(`an idle minute on ${screen}`, [costs[index]?.requests ?? 0], 'requests', 10);
    report('', [(costs[index]?.bytes ?? 0) / 1_000], 'KB', 30);
  }
} finally {
  await browser.close();
  await harness.close();
  await cleanUp();
}
