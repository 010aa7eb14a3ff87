import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { describeBrowser, sharedBrowser } from '../support/chromium.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { type ConsoleHarness, openConsole, signInAs } from '../support/console-harness.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { describeDesktop } from '../support/electron.ts';
import { type Authenticator, authenticator, enroll } from '../support/second-factor.ts';
import { password, signIn } from '../support/tenants.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const home = (page: Page) => page.getByRole('heading', { name: 'API keys', exact: true }).waitFor();
const passTime = (clock: FakeClock) => clock.advance({ seconds: 60 });

async function enterPassword(page: Page, email?: string): Promise<void> {
  if (email !== undefined) await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await button(page, 'Sign in').click();
}

async function enterCode(page: Page, code: string): Promise<void> {
  await page.getByLabel('Code', { exact: true }).fill(code);
  await button(page, 'Sign in').click();
}

/** Continues from the question for the password: scans the code, and saves the recovery codes. */
async function setUp(page: Page, clock: FakeClock): Promise<{ app: Authenticator; recoveryCodes: string[] }> {
  await page.getByLabel('Current password').fill(password);
  await button(page, 'Continue').click();
  await page.getByRole('img', { name: 'QR code for your authenticator app' }).waitFor();
  const secret = (await page.locator('.totp-secret').innerText()).replaceAll(' ', '');
  const app = authenticator(secret, clock.now);
  await page.getByLabel('Code', { exact: true }).fill('000000');
  await button(page, 'Turn on').click();
  await page.getByText('This code isn’t valid').waitFor();
  await page.getByLabel('Code', { exact: true }).fill(app.code());
  await button(page, 'Turn on').click();
  const codes = page.getByRole('alertdialog', { name: 'Save your recovery codes' });
  await codes.waitFor();
  await page.keyboard.press('Escape');
  await codes.getByText('Close without saving?').waitFor();
  await button(page, 'Go back').click();
  const recoveryCodes = (await codes.getByLabel('Recovery codes').inputValue()).split('\n');
  await button(page, "I've Saved It").click();
  await codes.waitFor({ state: 'detached' });
  passTime(clock);
  return { app, recoveryCodes };
}

/** A user sets up an app, signs in with it, loses it, and comes back with a recovery code. */
async function goTheWholeWay({ page, core, tenants }: Pick<ConsoleHarness, 'page' | 'core' | 'tenants'>, clock: FakeClock): Promise<void> {
  await signInAs({ page, core, tenants }, 'partner');
  await button(page, 'Your account').click();
  await button(page, 'Set up second factor…').click();
  const { app, recoveryCodes } = await setUp(page, clock);
  expect(recoveryCodes).to.have.length(10);
  await button(page, 'Sign out').click();

  await enterPassword(page, tenants.users.partner.email);
  await page.getByRole('heading', { name: 'Enter your code' }).waitFor();
  await enterCode(page, '000000');
  await page.getByText('This code isn’t valid').waitFor();
  await enterCode(page, app.code());
  await home(page);
  await button(page, 'Sign out').click();

  await enterPassword(page, tenants.users.partner.email);
  await enterCode(page, recoveryCodes[0] ?? '');
  await home(page);

  await button(page, 'Your account').click();
  await button(page, 'Turn off second factor…').click();
  await page.getByLabel('Code', { exact: true }).fill(recoveryCodes[1] ?? '');
  await button(page, 'Turn off').click();
  await page.getByRole('alertdialog').waitFor({ state: 'detached' });
  await button(page, 'Your account').click();
  await button(page, 'Set up second factor…').waitFor();
}

describeBrowser('a second factor in a browser', () => {
  let harness: CoreHarness;
  let context: BrowserContext;
  let page: Page;
  let clock: FakeClock;
  const open = async (environment: Record<string, string> = {}) => {
    clock = fakeClock();
    harness = await openCore({ clock, environment });
    context = await (await sharedBrowser()).newContext();
    page = await context.newPage();
    await page.goto(harness.core.url);
  };
  afterEach(async () => {
    await context.close();
    await harness.close();
  });

  it('is set up, used at sign-in, replaced by a recovery code, and turned off', async () => {
    await open();
    await goTheWholeWay({ ...harness, page }, clock);
  });

  it('is set up before anything else if the server requires it', async () => {
    await open({ SECOND_FACTOR: 'required' });
    await enterPassword(page, 'stan@example.com');
    await page.getByRole('heading', { name: 'Set up a second factor' }).waitFor();
    await setUp(page, clock);
    await home(page);
    await page.reload();
    await home(page);
  });

  it('is asked for when the session has ended, when the password changes, and before others’ are reset', async () => {
    await open();
    const { core, direct, tenants } = harness;
    const { app } = await enroll(core.url, await signIn(core.url, 'pat@example.com'), clock);
    const lost = await enroll(core.url, await signIn(core.url, 'tia@example.com'), clock);
    expect(lost.recoveryCodes).to.have.length(10);
    await enterPassword(page, 'pat@example.com');
    await enterCode(page, app.code());
    await home(page);
    passTime(clock);

    await direct.storage.database.write('sessions').delete();
    await page.getByRole('link', { name: 'Users' }).click();
    const ended = page.getByRole('alertdialog', { name: 'Your session has ended' });
    await ended.getByLabel('Password').fill(password);
    await ended.getByRole('button', { name: 'Sign in again' }).click();
    await ended.getByLabel('Code', { exact: true }).fill(app.code());
    await ended.getByRole('button', { name: 'Sign in again' }).click();
    await ended.waitFor({ state: 'detached' });
    passTime(clock);

    await page.getByRole('row', { name: tenants.users.tied.name }).click();
    await button(page, 'Reset second factor…').click();
    const reset = page.getByRole('alertdialog', { name: 'Reset second factor?' });
    await reset.getByLabel('Code', { exact: true }).fill('000000');
    await button(page, 'Reset second factor').click();
    await reset.getByText('This code isn’t valid').waitFor();
    await reset.getByLabel('Code', { exact: true }).fill(app.code());
    await button(page, 'Reset second factor').click();
    await reset.waitFor({ state: 'detached' });
    await page.getByRole('complementary').getByText('Off', { exact: true }).waitFor();
    passTime(clock);

    await button(page, 'Your account').click();
    await button(page, 'Change password…').click();
    await page.getByLabel('Current password').fill(password);
    await page.getByLabel('New password', { exact: true }).fill('four words are plenty');
    await page.getByLabel('Code', { exact: true }).fill(app.code());
    await button(page, 'Change password').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });
});

describeDesktop('a second factor in the app', () => {
  let harness: ConsoleHarness;
  let clock: FakeClock;
  before(async () => {
    clock = fakeClock();
    harness = await openConsole({ clock });
  });
  after(() => harness.close());

  it('is set up, used at sign-in, replaced by a recovery code, and turned off', async () => {
    await goTheWholeWay(harness, clock);
  });
});
