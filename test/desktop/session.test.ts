import { expect } from 'chai';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import {
  type ConsoleHarness,
  enterCode,
  enterPassword,
  fillInKey,
  finders,
  home,
  sharedConsole,
  signInAs,
} from '../support/console-harness.ts';
import { describeDesktop, wouldClose } from '../support/electron.ts';
import { type FaultyProxy, faultyProxy } from '../support/proxies.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { authenticator, enroll, password, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describeDesktop('the console, during a session,', () => {
  const open = sharedConsole();
  let harness: ConsoleHarness;
  let network: FaultyProxy;
  let clock: FakeClock;
  beforeEach(async () => {
    clock = fakeClock();
    harness = await open(clock);
    network = await faultyProxy(harness.core.url);
    await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
  });
  afterEach(async () => {
    await harness.close();
    await network.close();
  });

  const { button } = finders(() => harness.page);
  const through = async () => {
    await signInAs({ ...harness, core: { ...harness.core, url: network.url } }, 'account');
    await listed();
    // The shell loads these, too. After them, the next request comes from the test.
    const isLoaded = (each: string) => network.seen.some(({ method, path }) => method === 'GET' && path === each);
    await until(() => isLoaded('/console/stops') && isLoaded('/console/session'));
  };
  const listed = () => harness.page.getByRole('row', { name: 'Practice software' }).waitFor();

  it("doesn't let a slow sign-out from the previous session end the new one", async () => {
    const input = { server: network.url, email: harness.tenants.users.account.email, password, keepSignedIn: false };
    const signInHere = () => harness.page.evaluate((argument) => window.callkey.signIn(argument), input);
    // While the page starts, it cancels sign-ins, so this waits for its form.
    await harness.page.getByLabel('Email').waitFor();
    await signInHere();
    const held = Promise.withResolvers<void>();
    network.faults.push(held.promise);
    const signedOut = harness.page.evaluate(() => window.callkey.signOut());
    await until(() => network.faults.length === 0);
    await signInHere();
    held.resolve();
    expect((await signedOut).ok).to.equal(true);
    expect((await harness.page.evaluate(() => window.callkey.request('listApiKeys', {}))).ok).to.equal(true);
  });

  it("doesn't continue the session after the user has chosen to use another server", async () => {
    await through();
    network.faults.push({ status: 503 });
    await harness.page.clock.install();
    await harness.page.reload();
    await harness.page.getByRole('heading', { name: 'Can’t reach the server' }).waitFor();
    const held = Promise.withResolvers<void>();
    network.faults.push(held.promise);
    // Repeated, because the page sets its timer only once it has handled the failure.
    await until(async () => {
      await harness.page.clock.runFor(1_000);
      return network.faults.length === 0;
    });
    await button('Use another server').click();
    const before = network.seen.length;
    held.resolve();
    // Longer than the console waits between retries.
    await harness.page.clock.runFor(20_000);
    await harness.page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    expect(network.seen.slice(before).map(({ path }) => path)).not.to.include('/console/session');
  });

  it('says that nothing was sent if that is certain', async () => {
    const { page } = harness;
    await through();
    await fillInKey(page, 'Not sent', 'No expiration');
    await network.close();
    await button('Create Key').click();
    await page.getByText(/Connection refused.* Nothing was sent\.$/).waitFor();
    expect(await page.getByText('may still have created').count()).to.equal(0);
    network = await faultyProxy(harness.core.url);
  });

  it('tells the page how far the computer’s clock is ahead of the server’s', async () => {
    await through();
    const aheadMs = 3 * 86_400_000;
    const date = new Date(Date.now() - aheadMs).toUTCString();
    network.faults.push({ path: '/console/api-keys', fault: { status: 503, headers: { date } } });
    const lead = await harness.page.evaluate(() => window.callkey.request('listApiKeys', {}).then(() => window.callkey.readClockLead()));
    expect(lead).to.be.within(aheadMs, 2 * aheadMs);
  });

  it('lets the window close after a key value was discarded', async () => {
    await through();
    await fillInKey(harness.page, 'Taken away', 'No expiration');
    network.faults.push('pass', { status: 200, headers: { 'callkey-contract': '2' }, body: '{}' });
    await button('Create Key').click();
    await button('Use another server').click();
    await harness.page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    await until(() => wouldClose(harness.desktop));
  });

  describe('with a second factor', () => {
    async function showQrCode(): Promise<void> {
      const { page } = harness;
      await signInAs(harness, 'partner');
      await button('Your account').click();
      await button('Set up second factor…').click();
      await page.getByLabel('Current password').fill(password);
      await button('Continue').click();
      await page.getByRole('img', { name: 'QR code for your authenticator app' }).waitFor();
    }

    it('asks before the window closes while the recovery codes are visible', async () => {
      const { page } = harness;
      await showQrCode();
      await button('Copy key').click();
      await page.getByText(/· \d+ s/).waitFor();
      const secret = (await page.locator('.totp-secret').innerText()).replaceAll(' ', '');
      await page.getByLabel('Code', { exact: true }).fill(authenticator(secret, clock.now).code());
      await button('Turn on').click();
      await page.getByRole('alertdialog', { name: 'Save your recovery codes' }).waitFor();
      expect(await wouldClose(harness.desktop)).to.equal(false);
      await page.getByText('Close without saving?').waitFor();
    });

    it('requires a code at sign-in', async () => {
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

    it('lets the window close if the session ended while it was being set up', async () => {
      const { page, direct } = harness;
      await showQrCode();
      await page.getByLabel('Code', { exact: true }).fill('000000');
      await direct.storage.database.write('sessions').delete();
      // The dialog also appears by itself when the list reloads, and then the form's button can't be clicked.
      await page.keyboard.press('Enter');
      await button('Discard and sign out').click();
      await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
      await until(() => wouldClose(harness.desktop));
    });
  });
});
