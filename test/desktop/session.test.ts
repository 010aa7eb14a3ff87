import { expect } from 'chai';
import { type ConsoleHarness, clickUnderDialog, fillInKey, finders, sharedConsole, signInAs } from '../support/console-harness.ts';
import { describeDesktop } from '../support/electron.ts';
import { type FaultyProxy, faultyProxy } from '../support/proxies.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { password } from '../support/tenants.ts';
import { eventually, until } from '../support/until.ts';

describeDesktop('the console, during a session,', () => {
  const open = sharedConsole();
  let harness: ConsoleHarness;
  let network: FaultyProxy;
  beforeEach(async () => {
    harness = await open();
    network = await faultyProxy(harness.core.url);
    await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
  });
  afterEach(async () => {
    await harness.close();
    await network.close();
  });

  const { button } = finders(() => harness.page);
  const endSessions = () => harness.direct.storage.database.write('sessions').delete();
  const through = async () => {
    await signInAs({ ...harness, core: { ...harness.core, url: network.url } }, 'account');
    await listed();
    // The shell loads these, too. After them, the next request comes from the test.
    const isLoaded = (each: string) => network.seen.some(({ method, path }) => method === 'GET' && path === each);
    await until(() => isLoaded('/console/stops') && isLoaded('/console/session'));
  };
  const listed = () => harness.page.getByRole('row', { name: 'Practice software' }).waitFor();

  it('asks the user to sign in again when the session has ended, and keeps what they typed', async () => {
    const { page } = harness;
    await signInAs(harness, 'account');
    await listed();
    await fillInKey(page, 'Typed with care', '2 Years');
    await endSessions();
    await clickUnderDialog(page, 'Create Key');

    const ended = page.getByRole('alertdialog', { name: 'Your session has ended' });
    await ended.getByLabel('Password').fill('wrong');
    await ended.getByRole('button', { name: 'Sign in again' }).click();
    await ended.getByText('Incorrect password.').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await ended.getByLabel('Password').fill(password);
    await ended.getByRole('button', { name: 'Sign in again' }).click();
    await ended.waitFor({ state: 'detached' });

    await eventually(async () => expect(await page.getByLabel('Name', { exact: true }).inputValue()).to.equal('Typed with care'));
    await button('Create Key').click();
    await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
    await button("I've Saved It").click();
    await page.getByRole('row', { name: 'Typed with care' }).waitFor();
  });

  it("doesn't let a slow sign-out from the previous session end the new one", async () => {
    const input = { server: network.url, email: harness.tenants.users.account.email, password, keepSignedIn: false };
    const signIn = () => harness.page.evaluate((argument) => window.callkey.signIn(argument), input);
    // While the page starts, it cancels sign-ins, so this waits for its form.
    await harness.page.getByLabel('Email').waitFor();
    await signIn();
    const held = Promise.withResolvers<void>();
    network.faults.push(held.promise);
    const signedOut = harness.page.evaluate(() => window.callkey.signOut());
    await until(() => network.faults.length === 0);
    await signIn();
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
    await until(() => network.faults.length === 0);
    await button('Use another server').click();
    const before = network.seen.length;
    held.resolve();
    // Longer than the console waits between retries.
    await harness.page.clock.runFor(20_000);
    await harness.page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    expect(network.seen.slice(before).map(({ path }) => path)).not.to.include('/console/session');
  });

  it('says that a key may have been created only if something was sent, and keeps what was typed', async () => {
    const { page } = harness;
    await through();
    await fillInKey(page, 'In doubt', 'No expiration');
    network.faults.push({ path: '/console/api-keys', method: 'POST', fault: 'lose the response' });
    await button('Create Key').click();
    await page.getByText('The server may still have created the key.').waitFor();
    await page.locator('tr', { hasText: 'In doubt' }).waitFor();
    await network.close();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).to.equal('In doubt');
    await button('Create Key').click();
    await page.getByText(/Connection refused.* Nothing was sent\.$/).waitFor();
    expect(await page.getByText('may still have created').count()).to.equal(0);
    network = await faultyProxy(harness.core.url);
  });

  it('lets the window close after a key value was discarded', async () => {
    await through();
    await fillInKey(harness.page, 'Taken away', 'No expiration');
    network.faults.push('pass', { status: 200, headers: { 'callkey-contract': '2' }, body: '{}' });
    await button('Create Key').click();
    await button('Use another server').click();
    await harness.page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    const closed = harness.page.waitForEvent('close');
    await harness.desktop.app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.close());
    await closed;
  });
});
