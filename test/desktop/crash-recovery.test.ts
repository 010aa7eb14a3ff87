import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readFiles } from '../support/cli.ts';
import { signInAs } from '../support/console-harness.ts';
import { openCore } from '../support/core.ts';
import {
  chooseButton,
  describeDesktop,
  type LaunchOptions,
  launchConsole,
  listQuestions,
  type RunningConsole,
  wouldClose,
} from '../support/electron.ts';
import { openOnce } from '../support/suites.ts';
import { password } from '../support/tenants.ts';
import { until } from '../support/until.ts';

/** Waits until the app has ended and its output has been read. */
const toEnd = ({ app }: RunningConsole) => once(app.process(), 'close');

describeDesktop('crash recovery', () => {
  let running: RunningConsole;
  let hasEnded = true;
  const harness = openOnce(() => openCore());
  const launch = async (options?: LaunchOptions) => {
    running = await launchConsole(options);
    hasEnded = false;
    running.app.process().once('exit', () => {
      hasEnded = true;
    });
    await running.page.waitForLoadState('load');
  };
  // Tests share an app until one ends it.
  beforeEach(async () => {
    if (hasEnded) await launch();
  });
  after(() => running.close());

  /** Records when the page has crashed and reloaded. */
  const watchReopening = () =>
    running.app.evaluate(({ BrowserWindow }) => {
      Object.assign(globalThis, { isReopened: false });
      const contents = BrowserWindow.getAllWindows()[0]?.webContents;
      contents?.once('render-process-gone', () => contents.once('did-finish-load', () => Object.assign(globalThis, { isReopened: true })));
    });
  /** Asks repeatedly, because Playwright never resolves an evaluation that was running when the page crashed. */
  const reopened = () => until(() => running.app.evaluate(() => Reflect.get(globalThis, 'isReopened') === true).catch(() => false));
  const crashPage = () =>
    running.app.evaluate(({ BrowserWindow }) => {
      setImmediate(() => BrowserWindow.getAllWindows()[0]?.webContents.forcefullyCrashRenderer());
    });
  const crash = async () => {
    await watchReopening();
    await crashPage();
    await reopened();
  };

  /** Playwright no longer sees a page that has crashed. */
  const inPage = (code: string): Promise<unknown> =>
    running.app.evaluate(({ BrowserWindow }, script) => BrowserWindow.getAllWindows()[0]?.webContents.executeJavaScript(script), code);

  /** @returns the value of a new key of this name, for which a user has signed in */
  async function showKeyValue(name: string): Promise<string> {
    const { core, tenants } = harness;
    const input = { server: core.url, email: tenants.users.account.email, password, keepSignedIn: false };
    // While the page starts, it cancels sign-ins, so this waits for its heading.
    await until(async () => (await inPage(`document.querySelector('h1') !== null`)) === true);
    expect(await inPage(`callkey.signIn(${JSON.stringify(input)})`)).to.include({ ok: true });
    return String(Reflect.get(Object(Reflect.get(Object(await create(name, 'UTC')), 'value')), 'keyValue'));
  }
  const create = (name: string, timeZone: string) =>
    inPage(`callkey.request('createApiKey', { name: '${name}', expiration: { kind: 'none' }, timeZone: '${timeZone}' })`);

  describe('if the app continues', () => {
    it('says that the page crashed, and reopens it', async () => {
      await chooseButton(running, 'Reopen');
      await crash();
      expect(await listQuestions(running)).to.deep.equal([
        { message: 'The window has stopped working.', detail: 'You’re still signed in.', buttons: ['Reopen', 'Quit'] },
      ]);
      expect(await inPage('callkey.getStartupState().then(({ session }) => session)')).to.equal(null);
    });

    it('asks again if the page crashes while reopening', async () => {
      await chooseButton(running, 'Reopen');
      await running.app.evaluate(({ BrowserWindow }) => {
        Object.assign(globalThis, { isReopened: false });
        const contents = BrowserWindow.getAllWindows()[0]?.webContents;
        contents?.once('dom-ready', () => contents.forcefullyCrashRenderer());
        contents?.once('render-process-gone', () =>
          contents.once('render-process-gone', () =>
            contents.once('did-finish-load', () => Object.assign(globalThis, { isReopened: true })),
          ),
        );
        setImmediate(() => contents?.forcefullyCrashRenderer());
      });
      await reopened();
      const messages = (await listQuestions(running)).map(({ message }) => message);
      expect(messages).to.deep.equal(['The window has stopped working.', 'The window has stopped working.']);
    });

    it('reopens an unresponsive page if the user chooses to', async () => {
      await watchReopening();
      await chooseButton(running, 'Reopen');
      await running.app.evaluate(({ BrowserWindow }) => {
        setImmediate(() => BrowserWindow.getAllWindows()[0]?.emit('unresponsive'));
      });
      await reopened();
      const messages = (await listQuestions(running)).map(({ message }) => message);
      expect(messages).to.deep.equal(['The window isn’t responding.', 'The window has stopped working.']);
    });

    it('asks about an unresponsive page, and withdraws the question when the page responds again', async () => {
      const wasTakenBack = await running.app.evaluate(async ({ BrowserWindow, dialog }) => {
        const [window] = BrowserWindow.getAllWindows();
        const { showMessageBox } = dialog;
        const takenBack = new Promise<boolean>((resolve) => {
          dialog.showMessageBox = async (...args: unknown[]) => {
            dialog.showMessageBox = showMessageBox;
            const { signal } = args.at(-1) as { signal: AbortSignal };
            await new Promise((done) => signal.addEventListener('abort', done));
            resolve(signal.aborted);
            return { response: 1, checkboxChecked: false };
          };
        });
        window?.emit('unresponsive');
        window?.emit('responsive');
        return takenBack;
      });
      expect(wasTakenBack).to.equal(true);
      expect(await inPage('document.title')).to.equal('Callkey');
    });

    it('says that a key value was lost, and then lets the window close, even if creating the next key failed', async () => {
      await chooseButton(running, 'Reopen');
      await showKeyValue('Lost');
      await crash();
      expect((await listQuestions(running)).map(({ detail }) => detail)).to.deep.equal([
        'You’re still signed in. The value of the API key “Lost” was on screen, and can’t be shown again. If you haven’t saved it, revoke the key and create a new one.',
      ]);
      expect(await create('Next', 'Nowhere')).to.include({ ok: false });
      await until(() => wouldClose(running));
      await inPage('callkey.signOut()');
    });
  });

  const fail = () =>
    running.app.evaluate(({ app }) => {
      app.relaunch = () => process.stderr.write('relaunched\n');
      setImmediate(() => {
        throw new Error('a secret that the message quotes');
      });
    });

  describe('if the app exits', () => {
    it('names the key whose value was on screen when the whole app ended, and opens it', async () => {
      await showKeyValue('Cut off');
      const { userData } = running;
      const settings = join(userData, 'settings.json');
      await until(async () => readFileSync(settings, 'utf8').includes('Cut off'));
      const ended = toEnd(running);
      running.app.process().kill('SIGKILL');
      await ended;

      await launch({ userData, env: { CHOSEN_BUTTON: 'Show' } });
      // While the app starts, it may lose the promise of an evaluation.
      await until(async () => (await listQuestions(running).catch(() => [])).length > 0);
      const [{ message, detail = '' } = { message: '' }, ...others] = await listQuestions(running);
      expect([message, others]).to.deep.equal(['Callkey ended unexpectedly.', []]);
      expect(detail).to.match(/^The value of the API key “Cut off” was on screen/);
      expect(readFileSync(settings, 'utf8')).not.to.include('Cut off');
      await signInAs({ ...harness, page: running.page }, 'account');
      await running.page.getByRole('heading', { name: 'Cut off' }).waitFor();
    });

    it('quits after a crash of the page if the user chooses to, and leaves a key value nowhere', async () => {
      const keyValue = await showKeyValue('Shows');
      const end = toEnd(running);
      await chooseButton(running, 'Quit');
      await crashPage();
      expect(await end).to.deep.equal([0, null]);
      expect(running.output()).not.to.include(keyValue);
      for (const { path, text } of readFiles(running.userData)) expect(text.includes(keyValue), path).to.equal(false);
    });

    it('says that the main process failed, and restarts', async () => {
      await chooseButton(running, 'Restart');
      const end = toEnd(running);
      await fail();
      expect(await end).to.deep.equal([0, null]);
      expect(running.output()).to.match(/^Error\n\s+at .*\n(?:.*\n)*relaunched$/m);
      expect(running.output()).not.to.include('a secret');
    });

    it('quits after the main process failed if the user chooses to', async () => {
      await chooseButton(running, 'Quit');
      const end = toEnd(running);
      await fail();
      expect(await end).to.deep.equal([0, null]);
      expect(running.output()).not.to.include('relaunched');
    });
  });
});
