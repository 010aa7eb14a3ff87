import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { FakeClock } from './clock.ts';
import { type ConsoleHarness, signInAs } from './console-harness.ts';
import { type Authenticator, authenticator } from './second-factor.ts';
import { password } from './tenants.ts';

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

/** Continues from the password prompt: scans the code, and saves the recovery codes. */
export async function setUp(page: Page, clock: FakeClock): Promise<{ app: Authenticator; recoveryCodes: string[] }> {
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

/** Sets up an authenticator app as a user, signs in with it, loses it, and signs in with a recovery code. */
export async function setUpUseAndRecover(
  { page, core, tenants }: Pick<ConsoleHarness, 'page' | 'core' | 'tenants'>,
  clock: FakeClock,
): Promise<void> {
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
