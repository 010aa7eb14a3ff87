import { expect } from 'chai';
import { finders, sharedDesktop, signInAs } from '../support/console-harness.ts';
import { type CoreHarness, openCore } from '../support/core.ts';
import { chooseButton, chooseCommand, describeDesktop, listQuestions, type RunningConsole } from '../support/electron.ts';
import { faultyProxy } from '../support/proxies.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { password } from '../support/tenants.ts';
import { eventually, until } from '../support/until.ts';

describeDesktop('several servers', () => {
  const { open, leave } = sharedDesktop();
  let first: CoreHarness;
  let second: CoreHarness;
  let desktop: RunningConsole;
  before(async () => {
    [first, second] = await Promise.all([openCore(), openCore()]);
    await createKeyOn(first, first.tenants.users.account, 'Key of the first');
    await createKeyOn(first, first.tenants.users.account, 'Another of the first');
    await createKeyOn(second, second.tenants.users.account, 'Key of the second');
  });
  after(() => Promise.all([first.close(), second.close()]));
  beforeEach(async () => {
    desktop = await open();
    await chooseButton(desktop, 'Connect');
  });
  afterEach(() => leave(desktop));

  const serverHost = ({ core }: CoreHarness) => new URL(core.url).host;
  const { button, row } = finders(() => desktop.page);
  const dialog = () => desktop.page.getByRole('dialog', { name: 'Switch server' });
  const entry = (harness: CoreHarness) => dialog().getByRole('button', { name: new RegExp(`^${serverHost(harness)}`) });
  const openDialog = () => chooseCommand(desktop, 'switch-server');

  /** @param between what the user does on the first server */
  async function signInToBoth(between = async () => {}): Promise<void> {
    await signInAs({ ...first, page: desktop.page }, 'account');
    await row('Key of the first').waitFor();
    await between();
    await openDialog();
    await dialog().getByRole('button', { name: 'Add a server' }).click();
    await eventually(async () => expect(await desktop.page.getByLabel('Server address').inputValue()).to.equal(''));
    // The sign-in form replaces the list of keys, and also has this button.
    await button('Switch server').waitFor();
    await signInAs({ ...second, page: desktop.page }, 'account');
    await row('Key of the second').waitFor();
  }

  it("can be switched between without restarting, and each keeps its session and the user's settings", async () => {
    await signInToBoth(() => desktop.page.getByLabel('Search by name').fill('another'));
    await openDialog();
    await entry(first).click();
    await row('Another of the first').waitFor();
    await eventually(async () => expect(await desktop.page.getByLabel('Search by name').inputValue()).to.equal('another'));
    await eventually(async () => expect(await desktop.page.title()).to.include(serverHost(first)));
    await eventually(async () => expect(await desktop.page.getByRole('row', { name: /of the (first|second)/ }).count()).to.equal(1));
  });

  it("aren't switched by an abandoned sign-in, whose session is ended", async () => {
    const network = await faultyProxy(second.core.url);
    const { page } = desktop;
    const sent = (wanted: string) => network.seen.some(({ method, path }) => method === wanted && path === '/console/session');
    await signInAs({ ...first, page }, 'account');
    await openDialog();
    await dialog().getByRole('button', { name: 'Add a server' }).click();
    const held = Promise.withResolvers<void>();
    network.faults.push({ path: '/console/session', fault: held.promise });
    await page.getByLabel('Server address').fill(network.url);
    await page.getByLabel('Email').fill(second.tenants.users.account.email);
    await page.getByLabel('Password').fill(password);
    await button('Sign in').click();
    await until(() => sent('POST'));
    await button('Switch server').click();
    await entry(first).click();
    await row('Key of the first').waitFor();
    held.resolve();
    await eventually(async () => expect(sent('DELETE')).to.equal(true));
    const remembered = await page.evaluate(() => window.callkey.listServers());
    expect(remembered.map(({ address }) => address)).to.deep.equal([first.core.url]);
    await network.close();
  });

  it('are signed out of separately', async () => {
    await signInToBoth();
    await button('Sign out').click();
    await desktop.page.getByLabel('Email').waitFor();
    // The menu offers it wherever the page has the button.
    const isOffered = () => desktop.app.evaluate(({ Menu }) => Menu.getApplicationMenu()?.getMenuItemById('switch-server')?.enabled);
    await until(async () => (await isOffered()) === true);
    await openDialog();
    await entry(second).getByText('Signed out').waitFor();
    await entry(first).click();
    await row('Key of the first').waitFor();
  });

  it('are each contacted only after the user has agreed, if the server is new and the user is signed in to another one', async () => {
    const network = await faultyProxy(second.core.url);
    await signInAs({ ...first, page: desktop.page }, 'account');
    expect(await listQuestions(desktop)).to.deep.equal([]);
    await chooseButton(desktop, 'Cancel');
    const contact = (address: string) =>
      desktop.page.evaluate(async (server) => {
        const options = { server, keepSignedIn: false };
        const results = [
          await window.callkey.getSignInOptions(server),
          await window.callkey.signIn({ ...options, email: 'ada@example.com', password: 'a secret' }),
          await window.callkey.signInWithProvider({ ...options, staysOnPage: false }),
        ];
        await window.callkey.signOutOfProvider(server);
        return results.map((result) => !result.ok && result.failure.kind === 'refused' && result.failure.detail);
      }, address);
    const refusal = 'You chose not to connect to this server.';
    expect(await contact(network.url)).to.deep.equal([refusal, refusal, refusal]);
    expect(network.seen).to.deep.equal([]);
    const messages = (await listQuestions(desktop)).map(({ message }) => message);
    expect(new Set(messages)).to.deep.equal(new Set([`Connect to ${new URL(network.url).host}?`]));

    await chooseButton(desktop, 'Connect');
    await contact(network.url);
    expect(network.seen).not.to.deep.equal([]);
    expect(await listQuestions(desktop)).to.have.length(1);
    await network.close();
  });

  it("are remembered, most recent first, and can be forgotten individually, which ends that server's session", async () => {
    const sessions = async () => (await first.direct.storage.database.read('sessions').select('id')).length;
    const remembered = () => desktop.page.evaluate(() => window.callkey.listServers());
    const { email } = first.tenants.users.account;
    await signInToBoth();
    // This server isn't a remembered one.
    await desktop.page.evaluate(() => window.callkey.selectServer('http://127.0.0.1:1'));
    expect(await remembered()).to.deep.equal([
      { address: second.core.url, email, isSignedIn: true },
      { address: first.core.url, email, isSignedIn: true },
    ]);
    const before = await sessions();
    await openDialog();
    await dialog()
      .getByRole('button', { name: `Forget ${serverHost(first)}` })
      .click();
    await desktop.page
      .getByText(`Forgot ${serverHost(first)}.`)
      .first()
      .waitFor();
    await entry(first).waitFor({ state: 'detached' });
    expect(await sessions()).to.equal(before - 1);
    expect((await remembered()).map(({ address }) => address)).to.deep.equal([second.core.url]);
  });

  it('can have a name and a color, which stay after signing in again', async () => {
    const { page } = desktop;
    const color = () => page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--server'));
    await signInAs({ ...first, page }, 'account');
    await openDialog();
    await button(`Edit the name and color of ${serverHost(first)}`).click();
    const name = page.getByLabel('Name', { exact: true });
    for (const [typed, problem] of [
      ['Prod\u00aduction', 'Remove the invisible character U+00AD'],
      ['x'.repeat(41), 'Must be at most 40 characters'],
    ] as const) {
      await name.fill(typed);
      await button('Save').click();
      await page.getByText(problem).waitFor();
      const mark = { address: first.core.url, label: typed };
      expect(await page.evaluate((input) => window.callkey.markServer(input).catch(() => 'refused'), mark)).to.equal('refused');
    }
    await name.fill('Production');
    await page.getByLabel('Color', { exact: true }).selectOption('Red');
    await button('Save').click();
    await dialog()
      .getByRole('button', { name: /^Production/ })
      .waitFor();
    await button('Close').click();
    await eventually(async () => expect(await page.title()).to.match(/ · Production$/));
    expect(await color()).to.equal('#d13438');
    await button('Sign out').click();
    await page.getByLabel('Email').waitFor();
    expect(await color()).to.equal('');
    await signInAs({ ...first, page }, 'account');
    await eventually(async () => expect(await page.title()).to.match(/ · Production$/));
    await eventually(async () => expect(await color()).to.equal('#d13438'));
  });

  it('have their own links to views, which a colleague can open in a browser', async () => {
    const { page, app } = desktop;
    await signInAs({ ...first, page }, 'account');
    await page.getByLabel('Search by name').fill('Another');
    await button('Copy link to this view').click();
    const copied = `${first.core.url}/#/api-keys?search=Another`;
    await eventually(async () => expect(await app.evaluate(({ clipboard }) => clipboard.readText())).to.equal(copied));
  });
});
