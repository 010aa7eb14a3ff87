import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { readHeap } from '../support/browser.ts';
import { readFiles } from '../support/cli.ts';
import { fillInKey, finders, home, showOneTimePasswords, type UserName } from '../support/console-harness.ts';
import { openCore } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import {
  consoleEnvironment,
  describeDesktop,
  launchConsole,
  missingProgram,
  type RunningConsole,
  wouldClose,
} from '../support/electron.ts';
import { faultyProxy } from '../support/proxies.ts';
import { openOnce, skip } from '../support/suites.ts';
import { password } from '../support/tenants.ts';
import { eventually, until } from '../support/until.ts';

const run = promisify(execFile);
const missingClipboard = missingProgram('xclip');

describeDesktop('a secret in the console', () => {
  const harness = openOnce(() => openCore());
  const network = openOnce(() => faultyProxy(harness.core.url));
  let desktop: RunningConsole | undefined;
  after(() => desktop?.close());

  /** Shows the home screen of this user, in the app of the test before unless that test has closed it. */
  async function enter(user: UserName): Promise<void> {
    if (desktop === undefined || page().isClosed()) {
      desktop = await launchConsole();
      // While the page starts, it cancels sign-ins, so this waits for its heading.
      await page().locator('h1').first().waitFor();
    }
    await page().evaluate(
      async (input) => {
        await window.callkey.dismissSecret();
        history.replaceState(null, '', '#');
        const { session } = await window.callkey.getStartupState();
        if (!session?.ok || session.value.viewer.email !== input.email) await window.callkey.signIn(input);
      },
      { server: network.url, email: harness.tenants.users[user].email, password, keepSignedIn: false },
    );
    await page().reload();
    await home(page());
  }
  beforeEach(() => enter('account'));

  const running = () => desktop ?? expect.fail('no app');
  const page = () => running().page;
  const saveDialog = () => page().getByRole('alertdialog', { name: 'Save your key' });
  const { link, button } = finders(page);

  async function create(): Promise<string> {
    await fillInKey(page(), 'Canary');
    await button('Create Key').click();
    await saveDialog().waitFor();
    return page().getByLabel('Key value').inputValue();
  }

  /** Reads one of X11's two selections; empty if no program offers it. */
  const readX11 = async (name: 'clipboard' | 'primary') => {
    const { stdout } = await run('xclip', ['-o', '-selection', name], { env: await consoleEnvironment() }).catch(() => ({ stdout: '' }));
    return stdout;
  };
  const closeWindow = () => running().app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.close());

  it("isn't lost by closing the window or quitting: the console asks first", async () => {
    const keyValue = await create();
    for (const dismiss of [closeWindow, () => running().app.evaluate(({ app }) => app.quit())]) {
      await dismiss();
      await page().getByText('Close without saving?').waitFor();
      await button('Go back').click();
      await eventually(async () => expect(await page().getByLabel('Key value').inputValue()).to.equal(keyValue));
    }
  });

  it("is shown with what the system can't do to protect it, and a link that opens the reference of this server, never of another, in the browser", async () => {
    await create();
    const hint = saveDialog().getByText('This window can’t be hidden from screen sharing');
    expect(await hint.count()).to.equal(process.platform === 'linux' ? 1 : 0);
    await running().app.evaluate(({ shell }) => {
      const addresses: string[] = [];
      Object.assign(globalThis, { openedAddresses: addresses });
      shell.openExternal = async (address) => void addresses.push(address);
    });
    await page().evaluate(() => window.open('http://127.0.0.1:1/reference'));
    await link('The API reference').click();
    const opened = () => running().app.evaluate(() => (globalThis as unknown as { openedAddresses: string[] }).openedAddresses);
    await eventually(async () => expect(await opened()).to.deep.equal([`${network.url}/reference`]));
  });

  it('is discarded with the window after the user confirms, and the app ends', async () => {
    await create();
    await closeWindow();
    const ended = once(running().app.process(), 'exit');
    // The window may close before the click returns.
    await button('Close without saving')
      .click()
      .catch(() => undefined);
    expect(await ended).to.deep.equal([0, null]);
  });

  it("doesn't keep the window open if it arrives after the user was signed out", async () => {
    const arrival = Promise.withResolvers<void>();
    network.faults.push({ path: '/console/api-keys', method: 'POST', fault: arrival.promise });
    await fillInKey(page(), 'Too late');
    await button('Create Key').click();
    await until(() => network.faults.length === 0);
    await running().app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.webContents.send('command', 'lock'));
    await page().getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    arrival.resolve();
    await until(() => wouldClose(running()));
  });

  it("is copied to the clipboard only, with either button or the keyboard, and isn't left in the primary selection", async function () {
    if (missingClipboard !== undefined) skip(this, `${missingClipboard} isn't installed`);
    const keyValue = await create();
    for (const [copy, expected] of [
      [() => button('Copy').click(), keyValue],
      [() => button('Copy as .env line').click(), `CALLKEY_API_KEY=${keyValue}`],
      [() => page().getByLabel('Key value').press('Control+a+c'), keyValue],
    ] as const) {
      await copy();
      await eventually(async () => expect(await readX11('clipboard')).to.equal(expected));
      await eventually(async () => expect(await readX11('primary')).to.equal(''));
    }
  });

  it("is cleared from the primary selection with I've Saved It if the user has selected it, but stays in the clipboard for its minute", async function () {
    if (missingClipboard !== undefined) skip(this, `${missingClipboard} isn't installed`);
    const keyValue = await create();
    await button('Copy').click();
    await button('Copied').waitFor();
    await page().getByLabel('Key value').click({ clickCount: 3 });
    await eventually(async () => expect(await readX11('primary')).to.equal(keyValue));
    await button("I've Saved It").click();
    await eventually(async () => expect(await readX11('primary')).to.equal(''));
    expect(await readX11('clipboard')).to.equal(keyValue);
  });

  it('counts down until it is cleared from the clipboard, and only the button that copied last says so', async () => {
    await create();
    // The last button appears once the campaigns have loaded.
    await button('Copy command').waitFor();
    // From here on, the page's time passes only when the test lets it. A countdown begins in the next frame.
    await page().clock.install();
    await page().clock.pauseAt(Date.now() + 60_000);
    const places = () =>
      saveDialog()
        .getByRole('button')
        .evaluateAll((all) => all.map((each) => JSON.stringify(each.getBoundingClientRect())));
    const before = await places();
    await button('Copy').click();
    // The message is inside the dialog, because screen readers ignore everything outside a modal dialog.
    const message = saveDialog().getByRole('status');
    await message.getByText('Copied the key value. The console will clear the clipboard in one minute.').waitFor();
    await button('Copied').getByText('· 60 s').waitFor();
    expect(await places()).to.deep.equal(before);
    await page().clock.runFor(10_500);
    await button('Copied').getByText('· 50 s').waitFor();
    await button('Copy as .env line').click();
    await button('Copy').waitFor();
    await button('Copied').getByText('· 60 s').waitFor();
    await page().clock.runFor(60_500);
    await message.getByText('The .env line was cleared from the clipboard.').waitFor();
    expect(await places()).to.deep.equal(before);
    await button('Cleared. Copy again').click();
    await button('Copied').waitFor();
    await button('Copy command').click();
    await button('Copy as .env line').waitFor();
    // Otherwise, the time would also stand still in the next test's page.
    await page().clock.resume();
  });

  it("isn't called copied anymore when the user comes back after copying something else", async () => {
    await create();
    await button('Copy').click();
    await button('Copied').waitFor();
    await running().app.evaluate(({ clipboard }) => clipboard.writeText('a shopping list'));
    // The button listens only after the next frame.
    await page().evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))');
    await page().evaluate("dispatchEvent(new Event('focus'))");
    await button('Copy').waitFor();
  });

  it('can be saved in a file that only the user can read', async () => {
    const keyValue = await create();
    const filePath = join(freshDirectory(), 'key-value.txt');
    // Even if the file existed before, with other permissions.
    writeFileSync(filePath, 'older', { mode: 0o644 });
    await running().app.evaluate(({ dialog }, chosen) => {
      dialog.showSaveDialog = async () => ({ canceled: false, filePath: chosen });
      dialog.showMessageBox = async () => ({ response: 0, checkboxChecked: false });
    }, filePath);
    await button('Save to file…').click();
    await button('Saved to file').waitFor();
    expect(readFileSync(filePath, 'utf8')).to.equal(`${keyValue}\n`);
    if (process.platform !== 'win32') expect(statSync(filePath).mode & 0o777).to.equal(0o600);
    expect(readdirSync(dirname(filePath))).to.deep.equal(['key-value.txt']);
  });

  it('is cleared from the clipboard when the computer is locked, sleeps or wakes up', async () => {
    const { app } = running();
    const keyValue = await create();
    const read = () => app.evaluate(({ clipboard }) => clipboard.readText());
    for (const event of ['lock-screen', 'suspend', 'resume']) {
      await saveDialog()
        .getByRole('button', { name: /^(Copy|Copied)/ })
        .first()
        .click();
      await eventually(async () => expect(await read()).to.equal(keyValue));
      await app.evaluate(({ powerMonitor }, name) => void powerMonitor.emit(name as 'suspend'), event);
      await eventually(async () => expect(await read()).to.equal(''));
    }
  });

  it("is gone from files, storage, heap and output after its dialog is closed, whether it's a key value or a one-time password", async function () {
    this.timeout(120_000);
    await enter('partner');
    const keyValue = await create();
    await button('Copy').click();
    await button("I've Saved It").click();
    await saveDialog().waitFor({ state: 'detached' });
    const secrets = [keyValue.slice('svc_sk_live_'.length), ...(await showOneTimePasswords(page(), 'Blue Clinic'))];
    const heap = await readHeap(page());
    const shown = await page().evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML])');
    await running().close();
    const everywhere = [
      ...readFiles(running().userData),
      { path: 'the heap of the page', text: heap },
      { path: 'storage and page', text: String(shown) },
      { path: 'the output', text: running().output() },
      { path: 'the log of the core', text: JSON.stringify(harness.core.log) },
    ];
    for (const secret of secrets) for (const { path, text } of everywhere) expect(text.includes(secret), path).to.equal(false);
  });
});
