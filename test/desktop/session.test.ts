import { expect } from 'chai';
import { type ConsoleHarness, fillInKey, finders, sharedConsole, signInAs, tryAgain } from '../support/console-harness.ts';
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

  const { link, button } = finders(() => harness.page);
  const endSessions = () => harness.direct.storage.database.write('sessions').delete();
  const through = async () => {
    await signInAs({ ...harness, core: { ...harness.core, url: network.url } }, 'account');
    await listed();
  };
  /** Waits for the first list, so that the next request comes from the test. */
  const listed = () => harness.page.getByRole('row', { name: 'Practice software' }).waitFor();

  it('asks the user to sign in again when the session has ended, and keeps what they typed', async () => {
    const { page } = harness;
    await signInAs(harness, 'account');
    await listed();
    await fillInKey(page, 'Typed with care', '2 Years');
    await endSessions();
    await button('Create Key').click();

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

  it('keeps the selected tenancy when the user signs in again', async () => {
    const { page, tenants } = harness;
    await signInAs(harness, 'staff');
    await page.getByRole('button', { name: 'None selected' }).click();
    await page.getByRole('dialog').getByRole('combobox').fill('blue');
    await page.getByRole('option', { name: /Blue Clinic/ }).click();
    await page.getByRole('row', { name: 'Practice software' }).waitFor();
    await endSessions();
    await link('Activity').click();
    const ended = page.getByRole('alertdialog', { name: 'Your session has ended' });
    await ended.getByLabel('Password').fill(password);
    await page.keyboard.press('Enter');
    await ended.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: tenants.account.name }).waitFor();
    await link('API keys').click();
    await page.getByRole('row', { name: 'Practice software' }).waitFor();
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

  it("says that the core is unreachable, and continues automatically when it's back", async () => {
    await harness.page.getByLabel('Server address').waitFor();
    await through();
    network.faults.push({ status: 503 }, { status: 503 });
    await link('Activity').click();
    await harness.page.getByRole('heading', { name: 'Can’t reach the server' }).waitFor();
    await harness.page.getByText('The proxy in front of the server returned 503. Check that the server is running.').waitFor();
    // The console retries every few seconds without a click.
    await harness.page.getByRole('row', { name: 'Signed in' }).waitFor();
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

  it('shows the core’s message about an internal error', async () => {
    await through();
    const body = JSON.stringify({
      type: 'urn:callkey:problems#internal',
      title: 'Internal error',
      status: 500,
      detail: 'Something went wrong here.',
      instance: 'abc-1',
    });
    // Two faults, because the screen sends two requests: for the events, and for the choices in their filters.
    const fault = { status: 500, headers: { 'content-type': 'application/problem+json' }, body };
    network.faults.push(fault, fault);
    await link('Activity').click();
    await harness.page.getByText('Something went wrong here. (abc-1)').waitFor();
    await tryAgain(harness.page);
    await harness.page.getByRole('row', { name: 'Signed in' }).waitFor();
  });

  it('detects a newer, incompatible core while a form is open, and keeps what was typed', async () => {
    await through();
    await fillInKey(harness.page, 'Typed with care', 'No expiration');
    network.faults.push({ status: 200, headers: { 'callkey-contract': '2' }, body: '{}' });
    await button('Create Key').click();
    await harness.page.getByRole('alertdialog', { name: 'This server is too new for this console' }).waitFor();
    await button('Try again').click();
    await eventually(async () => expect(await harness.page.getByLabel('Name', { exact: true }).inputValue()).to.equal('Typed with care'));
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

  it("doesn't close the form while a key is being created", async () => {
    await through();
    await fillInKey(harness.page, 'Slow', 'No expiration');
    const held = Promise.withResolvers<void>();
    network.faults.push(held.promise);
    await button('Create Key').click();
    await harness.page.getByText('Creating…').waitFor();
    await harness.page.keyboard.press('Escape');
    await button('Cancel').click({ force: true });
    held.resolve();
    await harness.page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
  });

  it("doesn't let a late response close a form that was opened later", async () => {
    const { keyValue } = await createKeyOn(harness, harness.tenants.users.account, 'Found late');
    await through();
    await button('Which key is this?').click();
    await harness.page.getByLabel('Key value').fill(keyValue);
    const held = Promise.withResolvers<void>();
    network.faults.push(held.promise);
    await button('Find key').click();
    await harness.page.keyboard.press('Escape');
    await button('Create API key').click();
    await harness.page.getByLabel('Name', { exact: true }).fill('Typed with care');
    held.resolve();
    // Once a later request has its response, the held response has arrived, too.
    await harness.page.evaluate(`callkey.request('listActivityFacets', {})`);
    await eventually(async () => expect(await harness.page.getByLabel('Name', { exact: true }).inputValue()).to.equal('Typed with care'));
  });
});
