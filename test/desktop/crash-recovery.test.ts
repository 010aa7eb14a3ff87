import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { signInAs } from '../support/console-harness.ts';
import { openCore } from '../support/core.ts';
import { chooseButton, describeDesktop, launchConsole, listQuestions, type RunningConsole } from '../support/electron.ts';
import { password } from '../support/tenants.ts';
import { until } from '../support/until.ts';

/** Waits until the app has ended and its output has been read. */
const toEnd = ({ app }: RunningConsole) => once(app.process(), 'close');

describeDesktop('crash recovery', () => {
  let running: RunningConsole;
  const launch = async () => {
    running = await launchConsole();
    await running.page.waitForLoadState('load');
  };

  /** Records when the page has crashed and reloaded. */
  const watchReopening = () =>
    running.app.evaluate(({ BrowserWindow }) => {
      Object.assign(globalThis, { isReopened: false });
      const contents = BrowserWindow.getAllWindows()[0]?.webContents;
      contents?.once('render-process-gone', () => contents.once('did-finish-load', () => Object.assign(globalThis, { isReopened: true })));
    });
  /** Asks repeatedly, because Playwright never resolves an evaluation that was running when the page crashed. */
  const reopened = () => until(() => running.app.evaluate(() => Reflect.get(globalThis, 'isReopened') === true).catch(() => false));
  const crash = async () => {
    await watchReopening();
    await running.app.evaluate(({ BrowserWindow }) => {
      setImmediate(() => BrowserWindow.getAllWindows()[0]?.webContents.forcefullyCrashRenderer());
    });
    await reopened();
  };

  /** Playwright no longer sees a page that has crashed. */
  const inPage = (code: string): Promise<unknown> =>
    running.app.evaluate(({ BrowserWindow }, script) => BrowserWindow.getAllWindows()[0]?.webContents.executeJavaScript(script), code);

  describe('if the app continues', () => {
    before(launch);
    after(() => running.close());

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
        const takenBack = new Promise<boolean>((resolve) => {
          dialog.showMessageBox = async (...args: unknown[]) => {
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
  });

  const fail = () =>
    running.app.evaluate(({ app }) => {
      Object.assign(globalThis, { relaunches: 0 });
      app.relaunch = () => process.stderr.write('relaunched\n');
      setImmediate(() => {
        throw new Error('a secret that the message quotes');
      });
    });

  describe('if the app exits', () => {
    beforeEach(launch);
    afterEach(() => running.close());

    it('lets the window close after a crash lost a key value, even if creating the next key failed', async () => {
      const harness = await openCore();
      const { core, tenants } = harness;
      await chooseButton(running, 'Reopen');
      const input = { server: core.url, email: tenants.users.account.email, password, keepSignedIn: false };
      // While the page starts, it cancels sign-ins, so this waits for its form.
      await running.page.getByLabel('Email').waitFor();
      await running.page.evaluate((argument) => window.callkey.signIn(argument), input);
      const create = (timeZone: string) =>
        inPage(`callkey.request('createApiKey', { name: 'Lost', expiration: { kind: 'none' }, timeZone: '${timeZone}' })`);
      expect(await create('UTC')).to.include({ ok: true });
      await crash();
      expect(await create('Nowhere')).to.include({ ok: false });
      const end = toEnd(running);
      await running.app.evaluate(({ BrowserWindow }) => {
        setImmediate(() => BrowserWindow.getAllWindows()[0]?.close());
      });
      expect(await end).to.deep.equal([0, null]);
      await harness.close();
    });

    it('names the key whose value was on screen when the whole app ended, and opens it', async () => {
      const harness = await openCore();
      await signInAs({ ...harness, page: running.page }, 'account');
      await running.page.evaluate(() =>
        window.callkey.request('createApiKey', { name: 'Cut off', expiration: { kind: 'none' }, timeZone: 'UTC' }),
      );
      const settings = join(running.userData, 'settings.json');
      await until(async () => readFileSync(settings, 'utf8').includes('Cut off'));
      const ended = toEnd(running);
      running.app.process().kill('SIGKILL');
      await ended;

      running = await launchConsole({ userData: running.userData, env: { CHOSEN_BUTTON: 'Show' } });
      // While the app starts, it may lose the promise of an evaluation.
      await until(async () => (await listQuestions(running).catch(() => [])).length > 0);
      const [{ message, detail = '' } = { message: '' }, ...others] = await listQuestions(running);
      expect([message, others]).to.deep.equal(['Callkey ended unexpectedly.', []]);
      expect(detail).to.match(/^The value of the API key “Cut off” was on screen/);
      expect(readFileSync(settings, 'utf8')).not.to.include('Cut off');
      await signInAs({ ...harness, page: running.page }, 'account');
      await running.page.getByRole('heading', { name: 'Cut off' }).waitFor();
      await harness.close();
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
