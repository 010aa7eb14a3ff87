import { type FakeClock, fakeClock } from '../support/clock.ts';
import { button, type ConsoleHarness, enterCode, enterPassword, home, sharedConsole, signInAs } from '../support/console-harness.ts';
import { describeDesktop } from '../support/electron.ts';
import { authenticator, enroll, password, signIn } from '../support/tenants.ts';

describeDesktop('a second factor in the app', () => {
  const open = sharedConsole();
  let harness: ConsoleHarness;
  let clock: FakeClock;
  beforeEach(async () => {
    clock = fakeClock();
    harness = await open(clock);
  });
  afterEach(() => harness.close());

  const closeWindow = () => harness.desktop.app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.close());
  async function showQrCode(): Promise<void> {
    const { page } = harness;
    await signInAs(harness, 'partner');
    await button(page, 'Your account').click();
    await button(page, 'Set up second factor…').click();
    await page.getByLabel('Current password').fill(password);
    await button(page, 'Continue').click();
    await page.getByRole('img', { name: 'QR code for your authenticator app' }).waitFor();
  }

  it('makes the app ask before the window closes while the recovery codes are visible', async () => {
    const { page } = harness;
    await showQrCode();
    const secret = (await page.locator('.totp-secret').innerText()).replaceAll(' ', '');
    await page.getByLabel('Code', { exact: true }).fill(authenticator(secret, clock.now).code());
    await button(page, 'Turn on').click();
    await page.getByRole('alertdialog', { name: 'Save your recovery codes' }).waitFor();
    await closeWindow();
    await page.getByText('Close without saving?').waitFor();
    await page.evaluate(() => window.callkey.dismissSecret());
  });

  it('is required at sign-in', async () => {
    const { page, core, tenants } = harness;
    const { email } = tenants.users.partner;
    const { app } = await enroll(core.url, await signIn(core.url, email), clock);
    await page.getByLabel('Server address').fill(core.url);
    await enterPassword(page, email);
    await page.getByRole('heading', { name: 'Enter your code' }).waitFor();
    await enterCode(page, '000000');
    await page.getByText('This code isn’t valid').waitFor();
    await enterCode(page, app.code());
    await home(page);
  });

  it("doesn't keep the window open if the session ended while it was being set up", async () => {
    const { page, direct } = harness;
    await showQrCode();
    await page.getByLabel('Code', { exact: true }).fill('000000');
    await direct.storage.database.write('sessions').delete();
    // The dialog also appears by itself when the list reloads, and then the form's button can't be clicked.
    await page.keyboard.press('Enter');
    await button(page, 'Discard and sign out').click();
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    const closed = page.waitForEvent('close');
    await closeWindow();
    await closed;
  });
});
