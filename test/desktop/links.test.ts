import { expect } from 'chai';
import { sharedDesktop, signInAs } from '../support/console-harness.ts';
import { type CoreHarness, openCore } from '../support/core.ts';
import { chooseCommand, describeDesktop, listQuestions, type RunningConsole } from '../support/electron.ts';
import { faultyProxy } from '../support/proxies.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { until } from '../support/until.ts';

describeDesktop('a link to a screen', () => {
  const { open, leave } = sharedDesktop({ env: { CHOSEN_BUTTON: 'Cancel' }, args: ['--js-flags=--expose-gc'] });
  let first: CoreHarness;
  let second: CoreHarness;
  let desktop: RunningConsole;
  const ids = new Map<string, string>();
  before(async () => {
    [first, second] = await Promise.all([openCore(), openCore()]);
    for (const [harness, name] of [
      [first, 'Of the first'],
      [second, 'Of the second'],
    ] as const)
      ids.set(name, (await createKeyOn(harness, harness.tenants.users.account, name)).id);
    desktop = await open();
    await signInAs({ ...first, page: desktop.page }, 'account');
  });
  after(async () => {
    await leave(desktop);
    await Promise.all([first.close(), second.close()]);
  });

  const details = (name: string) => desktop.page.getByRole('heading', { name }).waitFor();
  const linkTo = (server: string, name: string) => `${server}/#/api-keys/${ids.get(name)}`;
  const toScheme = (link: string) => link.replace(/^https?:/, 'callkey:');
  const openFromSystem = (link: string) =>
    desktop.app.evaluate(({ app }, url) => void app.emit('second-instance', {}, ['callkey-console', '--flag', url], ''), link);

  async function paste(link: string): Promise<void> {
    await chooseCommand(desktop, 'palette');
    await desktop.page.getByRole('dialog').getByRole('combobox').fill(link);
    await desktop.page.getByRole('option', { name: 'Open this link' }).click();
  }

  it('opens when it is pasted into Go to', async () => {
    await paste(linkTo(first.core.url, 'Of the first'));
    await details('Of the first');
  });

  it('is contacted only after the user has agreed, if its server is new', async () => {
    const network = await faultyProxy(second.core.url);
    await openFromSystem(toScheme(linkTo(network.url, 'Of the second')));
    await until(async () => (await listQuestions(desktop)).length === 1);
    expect((await listQuestions(desktop))[0]?.message).to.equal(`Connect to ${new URL(network.url).host}?`);
    await paste(linkTo(network.url, 'Of the second'));
    await desktop.page.getByText('You chose not to connect to this server.').first().waitFor();
    expect(network.seen).to.deep.equal([]);
    await details('Of the first');
    await network.close();
  });

  it("is ignored while a question about another link's server is open", async () => {
    await desktop.app.evaluate(({ dialog }) => {
      const asked: string[] = [];
      const { promise, resolve } = Promise.withResolvers<Electron.MessageBoxReturnValue>();
      Object.assign(globalThis, { asked, decline: () => resolve({ response: 1, checkboxChecked: false }) });
      dialog.showMessageBox = (...args: unknown[]) => {
        asked.push((args.at(-1) as Electron.MessageBoxOptions).message);
        return promise;
      };
    });
    for (const host of ['one', 'one', 'two', 'three']) await openFromSystem(`callkey://${host}.example.com/#/calls`);
    const refusal = await desktop.page.evaluate(() => window.callkey.readLink('callkey://four.example.com/'));
    expect(refusal).to.have.nested.property('failure.detail', 'Answer the open question about another server, then try again.');
    await desktop.app.evaluate(() => Reflect.get(globalThis, 'decline')());
    expect(await desktop.app.evaluate(() => Reflect.get(globalThis, 'asked'))).to.deep.equal(['Connect to one.example.com?']);
    await details('Of the first');
  });

  it('opens on another server when the system hands it over, after signing in there', async () => {
    await desktop.app.evaluate(({ dialog }) => {
      dialog.showMessageBox = async () => ({ response: 0, checkboxChecked: false });
    });
    await openFromSystem(toScheme(linkTo(second.core.url, 'Of the second')));
    await desktop.page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    expect(await desktop.page.getByLabel('Server address').inputValue()).to.equal(second.core.url);
    await signInAs({ ...second, page: desktop.page }, 'account');
    await details('Of the second');
    await openFromSystem(toScheme(linkTo(first.core.url, 'Of the first')));
    await details('Of the first');
  });

  it('is opened by the notification of a key that expires soon, later and on its own server', async () => {
    const { app, page } = desktop;
    const expiration = { kind: 'custom', date: new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10) } as const;
    await createKeyOn(first, first.tenants.users.account, 'Ends soon', { on: new Date().toISOString(), expiration });
    await app.evaluate(() => {
      for (const run of Reflect.get(globalThis, 'slowWork')) run();
    });
    await until(() => app.evaluate(() => Reflect.get(globalThis, 'notices').length > 0));
    await openFromSystem(toScheme(linkTo(second.core.url, 'Of the second')));
    await details('Of the second');
    await app.evaluate(() => {
      globalThis.gc?.();
      Reflect.get(globalThis, 'notices')[0].deref()?.emit('click');
    });
    await page.getByRole('row', { name: 'Ends soon' }).waitFor();
  });

  it("doesn't close a dialog, which may contain typed text", async () => {
    const { page } = desktop;
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Typed with care');
    await openFromSystem(toScheme(linkTo(second.core.url, 'Of the second')));
    await page.getByText('Close this dialog, then open the link again.').first().waitFor({ state: 'attached' });
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).to.equal('Typed with care');
  });
});
