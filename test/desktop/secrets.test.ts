import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readFiles } from '../support/cli.ts';
import { openCore } from '../support/core.ts';
import {
  chooseButton,
  describeDesktop,
  type LaunchOptions,
  launchConsole,
  missingKeyring,
  type RunningConsole,
  startKeyring,
} from '../support/electron.ts';
import { faultyProxy } from '../support/proxies.ts';
import { openOnce } from '../support/suites.ts';
import { password } from '../support/tenants.ts';

async function signIn({ page }: RunningConsole, server: string, keepSignedIn: boolean) {
  // While the page is loading, it cancels sign-ins, so this waits for its heading.
  await page.locator('h1').first().waitFor();
  return page.evaluate((input) => window.callkey.signIn(input), { server, email: 'ada@example.com', password, keepSignedIn });
}

describeDesktop('the console, when it handles secrets,', () => {
  const harness = openOnce(() => openCore());
  const network = openOnce(() => faultyProxy(harness.core.url));
  let running: RunningConsole;
  const launch = async (options: LaunchOptions = {}) => {
    running = await launchConsole({ args: ['--password-store=basic'], ...options });
  };
  afterEach(() => running.close());

  it('keeps the session’s cookie in the main process, out of every page and file, and says why it doesn’t store the session without a keyring', async () => {
    await launch();
    const answer = await signIn(running, network.url, true);
    expect(answer.ok).to.equal(true);
    const { persistence } = await running.page.evaluate(() => window.callkey.getStartupState());
    expect(persistence).to.deep.equal({
      possible: false,
      reason: 'This system has no keyring, or it’s locked. Install or unlock one, then restart the console to stay signed in.',
    });
    const more = await running.page.evaluate(async () => [
      document.cookie,
      await window.callkey.getStartupState(),
      await window.callkey.request('listApiKeys', {}),
      { ...localStorage, ...sessionStorage },
      await indexedDB.databases(),
    ]);
    const cookie = network.seen.at(-1)?.headers.cookie ?? '';
    const values = cookie.split('; ').map((pair) => pair.slice(pair.indexOf('=') + 1));
    expect(values).to.have.length(4);
    const cookies = await running.app.evaluate(({ session }) => session.defaultSession.cookies.get({}));
    await running.close();
    const places = [JSON.stringify(answer), JSON.stringify(more), JSON.stringify(cookies), running.output()];
    const everywhere = [...places, ...readFiles(running.userData).map(({ text }) => text)];
    for (const each of [...values, password]) expect(everywhere.filter((text) => text.includes(each))).to.deep.equal([]);
    expect(readdirSync(running.userData)).not.to.include('session');
  });

  describe('while a key value is visible', () => {
    const showKeyValue = async () => {
      await launch();
      await signIn(running, harness.core.url, false);
      const created = await running.page.evaluate(() => {
        const heard: string[] = [];
        Object.assign(window, { heard });
        window.callkey.onCommand((command) => heard.push(command));
        return window.callkey.request('createApiKey', { name: 'Shows', expiration: { kind: 'none' }, timeZone: 'UTC' });
      });
      if (!created.ok) throw new Error(JSON.stringify(created.failure));
      return created.value.keyValue;
    };
    const untilClose = () => running.page.waitForFunction(() => (window as unknown as { heard: string[] }).heard.includes('close'));

    it('quits only after asking the page', async () => {
      await showKeyValue();
      await running.app.evaluate(({ app }) => app.quit());
      await untilClose();
      const ended = once(running.app.process(), 'exit');
      // The page may close before it responds.
      await running.page.evaluate(() => window.callkey.closeWindow()).catch(() => undefined);
      await ended;
    });

    it('says after a crash that the value was lost, and quits if the user chooses to', async () => {
      const keyValue = await showKeyValue();
      const detail = running.app.evaluate(
        ({ BrowserWindow, dialog }) =>
          new Promise<string>((resolve) => {
            dialog.showMessageBox = async (...args: unknown[]) => {
              resolve((args.at(-1) as { detail: string }).detail);
              return { response: 1, checkboxChecked: false };
            };
            setImmediate(() => BrowserWindow.getAllWindows()[0]?.webContents.forcefullyCrashRenderer());
          }),
      );
      const ended = once(running.app.process(), 'exit');
      expect(await detail).to.equal(
        'You’re still signed in. The value of the API key “Shows” was on screen, and can’t be shown again. If you haven’t saved it, revoke the key and create a new one.',
      );
      expect(await ended).to.deep.equal([0, null]);
      expect(running.output()).not.to.include(keyValue);
      for (const { path, text } of readFiles(running.userData)) expect(text.includes(keyValue), path).to.equal(false);
    });
  });

  describe('with the system’s keyring', () => {
    if (missingKeyring !== undefined) {
      it.skip(`isn't tested: ${missingKeyring} isn't installed`);
      return;
    }
    const args: string[] = [];
    let env: Record<string, string>;
    const keyring = openOnce(() => startKeyring());
    before(async () => {
      ({ env } = keyring);
    });

    it('keeps the user signed in until they sign out, even without a desktop, but only where they chose to stay signed in', async () => {
      await using cleanup = new AsyncDisposableStack();
      const other = await faultyProxy(harness.core.url);
      cleanup.defer(() => other.close());
      await launch({ args, env });
      const { userData } = running;
      await chooseButton(running, 'Connect');
      expect((await running.page.evaluate(() => window.callkey.getStartupState())).persistence).to.deep.equal({ possible: true });
      await signIn(running, other.url, false);
      await signIn(running, network.url, true);
      await running.page.evaluate(() => window.callkey.request('listApiKeys', {}));
      await running.close();
      expect(readFileSync(join(userData, 'session'), 'latin1'), "the keyring's key").to.match(/^v11/);
      const cookie = network.seen.at(-1)?.headers.cookie ?? '';
      for (const pair of cookie.split('; ')) {
        const value = pair.slice(pair.indexOf('=') + 1);
        for (const { path, text } of readFiles(userData)) expect(text.includes(value), path).to.equal(false);
      }

      await launch({ args, env, userData });
      const { session } = await running.page.evaluate(() => window.callkey.getStartupState());
      expect(session?.ok && session.value.viewer.email).to.equal('ada@example.com');
      const servers = await running.page.evaluate(() => window.callkey.listServers());
      expect(servers.map(({ address, isSignedIn }) => [address, isSignedIn])).to.deep.equal([
        [network.url, true],
        [other.url, false],
      ]);
      expect((await running.page.evaluate(() => window.callkey.signOut())).ok).to.equal(true);
      await running.close();

      await launch({ args, env, userData });
      expect((await running.page.evaluate(() => window.callkey.getStartupState())).session).to.equal(null);
      await signIn(running, network.url, true);
      // The server recognizes the device, but nothing more.
      const names = (cookies = '') => cookies.split('; ').map((pair) => pair.replace(/=.*/, ''));
      const [attempt] = network.seen.filter(({ method }) => method === 'POST').slice(-1);
      expect(names(attempt?.headers.cookie).map((name) => name.replace(/_\w{8}(?=\.|$)/, ''))).to.have.members([
        'callkey_device',
        'callkey_device.sig',
      ]);
      await running.page.evaluate((address) => window.callkey.forgetServer(address), network.url);
      await running.close();
      expect(readdirSync(userData)).not.to.include('session');
    });
  });
});
