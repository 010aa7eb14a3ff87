import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { readHeap } from '../support/browser.ts';
import { readFiles } from '../support/cli.ts';
import { fillInKey, finders, sharedConsole, showOneTimePasswords, signInAs } from '../support/console-harness.ts';
import { freshDirectory } from '../support/databases.ts';
import { consoleEnvironment, describeDesktop, missingProgram } from '../support/electron.ts';
import { faultyProxy } from '../support/proxies.ts';
import { openForEach, skip } from '../support/suites.ts';
import { eventually, until } from '../support/until.ts';

const run = promisify(execFile);
const missingClipboard = missingProgram('xclip');

describeDesktop('a secret in the console', () => {
  const open = sharedConsole();
  const harness = openForEach(() => open());
  beforeEach(async () => {
    await signInAs(harness, 'account');
  });

  const saveDialog = () => harness.page.getByRole('alertdialog', { name: 'Save your key' });
  const { link, button } = finders(() => harness.page);

  async function create(): Promise<string> {
    await fillInKey(harness.page, 'Canary');
    await button('Create Key').click();
    await saveDialog().waitFor();
    return harness.page.getByLabel('Key value').inputValue();
  }

  /** Reads one of X11's two selections; empty if no program offers it. */
  const readX11 = async (name: 'clipboard' | 'primary') => {
    const { stdout } = await run('xclip', ['-o', '-selection', name], { env: await consoleEnvironment() }).catch(() => ({ stdout: '' }));
    return stdout;
  };
  const closeWindow = () => harness.desktop.app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.close());

  it("isn't lost by Escape, even twice, a click on the backdrop or closing the window: the console asks first", async () => {
    const { keyboard, mouse } = harness.page;
    const keyValue = await create();
    for (const dismiss of [
      () => keyboard.press('Escape'),
      () => keyboard.press('Escape').then(() => keyboard.press('Escape')),
      () => mouse.click(5, 5),
      closeWindow,
    ]) {
      await dismiss();
      await harness.page.getByText('Close without saving?').waitFor();
      await button('Go back').click();
      await eventually(async () => expect(await harness.page.getByLabel('Key value').inputValue()).to.equal(keyValue));
    }
  });

  it("is shown with what the system can't do to protect it, and a link that opens the reference of this server, never of another, in the browser", async () => {
    await create();
    const hint = saveDialog().getByText('This window can’t be hidden from screen sharing');
    expect(await hint.count()).to.equal(process.platform === 'linux' ? 1 : 0);
    await harness.desktop.app.evaluate(({ shell }) => {
      const addresses: string[] = [];
      Object.assign(globalThis, { openedAddresses: addresses });
      shell.openExternal = async (address) => void addresses.push(address);
    });
    await harness.page.evaluate(() => window.open('http://127.0.0.1:1/reference'));
    await link('The API reference').click();
    const opened = () => harness.desktop.app.evaluate(() => (globalThis as unknown as { openedAddresses: string[] }).openedAddresses);
    await eventually(async () => expect(await opened()).to.deep.equal([`${harness.core.url}/reference`]));
  });

  it("isn't lost by double-clicking Create Key", async () => {
    await button('Create API key').click();
    // The longest name makes the largest dialog.
    await harness.page.getByLabel('Name', { exact: true }).fill('W'.repeat(200));
    await harness.page.getByRole('radio', { name: 'No expiration', exact: true }).check();
    const { x, y, width, height } = (await button('Create Key').boundingBox()) ?? expect.fail('no button');
    await button('Create Key').click();
    await saveDialog().waitFor();
    for (const part of [0.1, 0.5, 0.9]) await harness.page.mouse.click(x + width * part, y + height * part);
    await saveDialog().waitFor();
  });

  it('is discarded with the window after the user confirms', async () => {
    await create();
    await closeWindow();
    const closed = harness.page.waitForEvent('close');
    // The window may close before the click returns.
    await Promise.all([
      closed,
      button('Close without saving')
        .click()
        .catch(() => undefined),
    ]);
  });

  it("doesn't keep the window open if it arrives after the user was signed out", async () => {
    const { page, desktop, core } = harness;
    const network = await faultyProxy(core.url);
    await button('Sign out').click();
    await signInAs({ ...harness, core: { ...core, url: network.url } }, 'account');
    const arrival = Promise.withResolvers<void>();
    network.faults.push({ path: '/console/api-keys', method: 'POST', fault: arrival.promise });
    await fillInKey(page, 'Too late');
    await button('Create Key').click();
    await eventually(async () => expect(network.seen.some(({ method }) => method === 'POST')).to.equal(true));
    await desktop.app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.webContents.send('command', 'lock'));
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    arrival.resolve();
    await until(async () => {
      await closeWindow().catch(() => undefined);
      return page.isClosed();
    });
    await network.close();
  });

  it("is copied to the clipboard only, with either button or the keyboard, and isn't left in the primary selection", async function () {
    if (missingClipboard !== undefined) skip(this, `${missingClipboard} isn't installed`);
    const keyValue = await create();
    for (const [copy, expected] of [
      [() => button('Copy').click(), keyValue],
      [() => button('Copy as .env line').click(), `CALLKEY_API_KEY=${keyValue}`],
      [() => harness.page.getByLabel('Key value').press('Control+a+c'), keyValue],
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
    await harness.page.getByLabel('Key value').click({ clickCount: 3 });
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
    await harness.page.clock.install();
    await harness.page.clock.pauseAt(Date.now() + 60_000);
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
    await harness.page.clock.runFor(10_500);
    await button('Copied').getByText('· 50 s').waitFor();
    await button('Copy as .env line').click();
    await button('Copy').waitFor();
    await button('Copied').getByText('· 60 s').waitFor();
    await harness.page.clock.runFor(60_500);
    await message.getByText('The .env line was cleared from the clipboard.').waitFor();
    expect(await places()).to.deep.equal(before);
    await button('Cleared. Copy again').click();
    await button('Copied').waitFor();
    await button('Copy command').click();
    await button('Copy as .env line').waitFor();
    // Otherwise, the time would also stand still in the next test's page.
    await harness.page.clock.resume();
  });

  it("isn't called copied anymore when the user comes back after copying something else", async () => {
    await create();
    await button('Copy').click();
    await button('Copied').waitFor();
    await harness.desktop.app.evaluate(({ clipboard }) => clipboard.writeText('a shopping list'));
    // Repeated, because the button listens only from the next frame on.
    await eventually(async () => {
      await harness.page.evaluate("dispatchEvent(new Event('focus'))");
      await button('Copy').waitFor({ timeout: 1_000 });
    });
  });

  it('can be saved in a file that only the user can read', async () => {
    const keyValue = await create();
    const filePath = join(freshDirectory(), 'key-value.txt');
    // Even if the file existed before, with other permissions.
    writeFileSync(filePath, 'older', { mode: 0o644 });
    await harness.desktop.app.evaluate(({ dialog }, chosen) => {
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
    const { app } = harness.desktop;
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
    await button('Sign out').click();
    await signInAs(harness, 'partner');
    const keyValue = await create();
    await button('Copy').click();
    await button("I've Saved It").click();
    await saveDialog().waitFor({ state: 'detached' });
    const secrets = [keyValue.slice('svc_sk_live_'.length), ...(await showOneTimePasswords(harness.page, 'Blue Clinic'))];
    const heap = await readHeap(harness.page);
    const page = await harness.page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML])',
    );
    await harness.desktop.close();
    const everywhere = [
      ...readFiles(harness.desktop.userData),
      { path: 'the heap of the page', text: heap },
      { path: 'storage and page', text: String(page) },
      { path: 'the output', text: harness.desktop.output() },
      { path: 'the log of the core', text: JSON.stringify(harness.core.log) },
    ];
    for (const secret of secrets) for (const { path, text } of everywhere) expect(text.includes(secret), path).to.equal(false);
  });
});
