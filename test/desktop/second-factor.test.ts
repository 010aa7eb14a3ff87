import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import decodeQr from 'qr/decode.js';
import { operator } from '../../core/domain/audit/audit.ts';
import { resetPassword } from '../../core/domain/directory/users.ts';
import { describeBrowser, holdResponse, sharedBrowser, violationsOn } from '../support/browser.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { button, enterCode, enterPassword, home, passTime } from '../support/console-harness.ts';
import { type CoreHarness, openCore } from '../support/core.ts';
import { authenticator, enroll, password, signIn } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

/** Reads the QR code in a picture of the page, as a phone does. */
async function scan(page: Page): Promise<string> {
  const box = await page.getByRole('img', { name: 'QR code for your authenticator app' }).boundingBox();
  if (!box) throw new Error('The page has no QR code.');
  const around = 24;
  const clip = { x: box.x - around, y: box.y - around, width: box.width + 2 * around, height: box.height + 2 * around };
  const picture = (await page.screenshot({ clip })).toString('base64');
  // The console's content security policy forbids evaluating this code in the console's own page.
  const reader = await page.context().newPage();
  const { pixels, ...size } = await reader.evaluate(async (png) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0))]));
    const { width, height } = bitmap;
    const drawing = new OffscreenCanvas(width, height).getContext('2d');
    drawing?.drawImage(bitmap, 0, 0);
    // As text, because Playwright needs seconds for so many numbers.
    const bytes = Array.from(drawing?.getImageData(0, 0, width, height).data ?? [], (byte) => String.fromCharCode(byte));
    return { width, height, pixels: btoa(bytes.join('')) };
  }, picture);
  await reader.close();
  // By default, decoding may take only as long as one camera frame, which is too short on a busy machine.
  return decodeQr({ ...size, data: Buffer.from(pixels, 'base64') }, { timeLimit: 10_000 });
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

  it('is set up before anything else if the server requires it, with a QR code that a phone can scan, in either theme and at any width', async () => {
    await open({ SECOND_FACTOR: 'required' });
    await enterPassword(page, 'stan@example.com');
    await page.getByRole('heading', { name: 'Set up a second factor' }).waitFor();
    await page.getByLabel('Current password').fill(password);
    await button(page, 'Continue').click();
    await page.getByRole('img', { name: 'QR code for your authenticator app' }).waitFor();
    const secret = (await page.locator('.totp-secret').innerText()).replaceAll(' ', '');
    const issuer = encodeURIComponent(`Callkey ${new URL(harness.core.url).host.replace(':', ' ')}`);
    const link = `otpauth://totp/${issuer}:stan%40example.com?secret=${secret}&issuer=${issuer}`;
    // Its colors depend only on the theme, and its size only on the width.
    for (const [colorScheme, width] of [
      ['light', 480],
      ['dark', 1280],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await eventually(async () => expect(await scan(page), `${colorScheme}, ${width} px wide`).to.equal(link));
    }
    await page.getByLabel('Code', { exact: true }).fill('000000');
    await button(page, 'Turn on').click();
    await page.getByText('This code isn’t valid').waitFor();
    await page.getByLabel('Code', { exact: true }).fill(authenticator(secret, clock.now).code());
    await button(page, 'Turn on').click();
    const codes = page.getByRole('alertdialog', { name: 'Save your recovery codes' });
    await codes.waitFor();
    await page.keyboard.press('Escape');
    await codes.getByText('Close without saving?').waitFor();
    await button(page, 'Go back').click();
    expect((await codes.getByLabel('Recovery codes').inputValue()).split('\n')).to.have.length(10);
    await button(page, "I've Saved It").click();
    await codes.waitFor({ state: 'detached' });
    await home(page);
    await page.reload();
    await home(page);
  });

  it('can get new recovery codes, after which the earlier ones no longer work, in dialogs without axe violations', async () => {
    await open();
    const { core } = harness;
    await page.emulateMedia({ reducedMotion: 'reduce' });
    const violations: string[] = [];
    const inspect = async (name: string) => {
      violations.push(...(await violationsOn(page)).map((violation) => `${name}: ${violation}`));
    };
    const { app, recoveryCodes } = await enroll(core.url, await signIn(core.url, 'pat@example.com'), clock);
    await enterPassword(page, 'pat@example.com');
    await page.getByLabel('Code', { exact: true }).and(page.locator(':focus')).waitFor();
    await inspect('sign-in');
    await enterCode(page, recoveryCodes[0] ?? '');
    await home(page);
    await button(page, 'Your account').click();
    await page.getByText('On, 9 recovery codes left').waitFor();
    await button(page, 'Replace recovery codes…').click();
    const asking = page.getByRole('alertdialog', { name: 'Replace your recovery codes?' });
    await asking.getByLabel('Code', { exact: true }).fill('000000');
    await inspect('replacing');
    await button(page, 'Replace codes').click();
    await asking.getByText('This code isn’t valid').waitFor();
    await asking.getByLabel('Code', { exact: true }).fill(app.code());
    await button(page, 'Replace codes').click();
    const saving = page.getByRole('alertdialog', { name: 'Save your recovery codes' });
    const [replaced = ''] = (await saving.getByRole('textbox', { name: 'Recovery codes' }).inputValue()).split('\n');
    await inspect('saving');
    expect(violations).to.deep.equal([]);
    await button(page, "I've Saved It").click();
    await saving.waitFor({ state: 'detached' });
    await button(page, 'Your account').click();
    await page.getByText('On, 10 recovery codes left').waitFor();
    await button(page, 'Close').click();
    await button(page, 'Sign out').click();
    await enterPassword(page);
    await enterCode(page, recoveryCodes[1] ?? '');
    await page.getByText('This code isn’t valid').waitFor();
    await enterCode(page, replaced);
    await home(page);
  });

  it('can be turned off without signing the user in again if they sign out before the session has reloaded', async () => {
    await open();
    const { app, recoveryCodes } = await enroll(harness.core.url, await signIn(harness.core.url, 'pat@example.com'), clock);
    await enterPassword(page, 'pat@example.com');
    await enterCode(page, app.code());
    await home(page);
    const held = await holdResponse(page, '**/console/session');
    await button(page, 'Your account').click();
    await button(page, 'Turn off second factor…').click();
    await page.getByLabel('Code', { exact: true }).fill(recoveryCodes[0] ?? '');
    await button(page, 'Turn off').click();
    await held.answered;
    await button(page, 'Sign out').click();
    await page.getByLabel('Email').waitFor();
    await held.release();
    await enterPassword(page);
    await home(page);
  });

  it('can be entered after going back to the password, if signing in again took too long', async () => {
    await open();
    const { app } = await enroll(harness.core.url, await signIn(harness.core.url, 'pat@example.com'), clock);
    await enterPassword(page, 'pat@example.com');
    await enterCode(page, app.code());
    await home(page);
    await harness.direct.storage.database.write('sessions').delete();
    // The dialog also appears by itself when the list reloads, and then the link can't be clicked.
    await page.evaluate(`location.hash = '#/activity'`);
    const ended = page.getByRole('alertdialog', { name: 'Your session has ended' });
    const again = ended.getByRole('button', { name: 'Sign in again' });
    await ended.getByLabel('Password').fill(password);
    await again.click();
    await ended.getByLabel('Code', { exact: true }).waitFor();
    clock.advance({ minutes: 11 });
    await ended.getByLabel('Code', { exact: true }).fill(app.code());
    await again.click();
    await ended.getByText('go back and start again').waitFor();
    await ended.getByRole('button', { name: 'Back' }).click();
    expect(await ended.getByText('go back and start again').count()).to.equal(0);
    await ended.getByLabel('Password').fill(password);
    await again.click();
    await ended.getByLabel('Code', { exact: true }).fill(app.code());
    await again.click();
    await ended.waitFor({ state: 'detached' });
  });

  it('is required again to replace a one-time password', async () => {
    await open();
    const { core, direct, tenants } = harness;
    const { app } = await enroll(core.url, await signIn(core.url, 'pat@example.com'), clock);
    const { password: once } = await resetPassword(direct.ports, operator, tenants.users.partner, null);
    await page.getByLabel('Email').fill('pat@example.com');
    await page.getByLabel('Password').fill(once ?? '');
    await button(page, 'Sign in').click();
    await enterCode(page, app.code());
    await page.getByRole('heading', { name: 'Choose a new password' }).waitFor();
    await page.getByLabel('New password', { exact: true }).fill('four words are plenty');
    await page.getByLabel('Code', { exact: true }).fill(app.code());
    await button(page, 'Change password').click();
    await page.getByText('This code isn’t valid').waitFor();
    await page.getByLabel('Code', { exact: true }).fill(app.code(1));
    await button(page, 'Change password').click();
    await home(page);
  });

  it('is required when the password changes, and before someone is created or reset', async () => {
    await open();
    const { core, tenants } = harness;
    const { app } = await enroll(core.url, await signIn(core.url, 'pat@example.com'), clock);
    await enroll(core.url, await signIn(core.url, 'tia@example.com'), clock);
    await enterPassword(page, 'pat@example.com');
    await enterCode(page, app.code());
    await home(page);
    passTime(clock);

    await page.getByRole('link', { name: 'Users' }).click();
    await page.getByRole('row', { name: tenants.users.tied.name }).click();
    await button(page, 'More').click();
    await button(page, 'Reset second factor…').click();
    const reset = page.getByRole('alertdialog', { name: 'Reset second factor?' });
    await reset.getByLabel('Code', { exact: true }).fill('000000');
    await button(page, 'Reset second factor').click();
    await reset.getByText("This code isn't valid").waitFor();
    await reset.getByLabel('Code', { exact: true }).fill(app.code());
    await button(page, 'Reset second factor').click();
    await reset.waitFor({ state: 'detached' });
    await page.getByRole('complementary').getByText('Off', { exact: true }).waitFor();
    passTime(clock);

    await button(page, 'Create user').click();
    const creating = page.getByRole('dialog', { name: 'Create user' });
    await creating.getByLabel('Name').fill('New');
    await creating.getByLabel('Email').fill('new@example.com');
    await creating.getByLabel('Type').selectOption('partner');
    const create = creating.getByRole('button', { name: 'Create user' });
    await create.click();
    await creating.getByText('Enter a code from your authenticator app').waitFor();
    await creating.getByLabel('Code', { exact: true }).fill(app.code());
    await create.click();
    await button(page, "I've Saved It").click();
    await page.getByRole('row', { name: 'New', exact: false }).waitFor();
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
