import { expect } from 'chai';
import { channelNames } from '../../desktop/ipc.ts';
import { describeDesktop, launchConsole, type RunningConsole } from '../support/electron.ts';

type Anything = Record<string, (input?: unknown) => Promise<unknown>>;

describeDesktop('the bridge to the page', () => {
  let running: RunningConsole;
  before(async () => {
    running = await launchConsole();
  });
  after(() => running.close());

  it('has exactly these functions', async () => {
    expect(await running.page.evaluate(() => Object.keys(window.callkey).sort())).to.deep.equal([
      'capabilities',
      'changePassword',
      'changeUser',
      'closeWindow',
      'copySecret',
      'copyText',
      'createApiKey',
      'createEntry',
      'createUser',
      'deleteUser',
      'dismissSecret',
      'forgetServer',
      'getApiKey',
      'getCall',
      'getStartupState',
      'identifyApiKey',
      'listAccounts',
      'listActivity',
      'listActivityFacets',
      'listApiKeys',
      'listCalls',
      'listCampaigns',
      'listDirectory',
      'listOlderApiKeys',
      'listServers',
      'listUsers',
      'offerCommands',
      'onCommand',
      'onSessionChange',
      'previewDeletion',
      'previewRevocation',
      'recordExport',
      'renameEntry',
      'resetPassword',
      'revokeApiKey',
      'revokeApiKeys',
      'saveFile',
      'searchTenancies',
      'selectServer',
      'selectTenancy',
      'setUp',
      'signIn',
      'signOut',
      'summarizeAllCalls',
      'summarizeCalls',
    ]);
  });

  it("is the only global that the page has in addition to a normal page's", async () => {
    const plain = await running.app.evaluate(async ({ BrowserWindow }) => {
      const window = new BrowserWindow({ show: false });
      await window.loadURL('app://callkey/index.html');
      const names = await window.webContents.executeJavaScript('Object.getOwnPropertyNames(window)');
      window.destroy();
      return names as string[];
    });
    const own = await running.page.evaluate(() => Object.getOwnPropertyNames(window));
    // Playwright adds globals of its own.
    expect(own.filter((name) => !plain.includes(name) && !/playwright/i.test(name))).to.deep.equal(['callkey']);
  });

  it('exposes nothing from Node or Electron', async () => {
    const found = await running.page.evaluate(() =>
      ['require', 'process', 'module', 'Buffer', 'global', 'electron', 'ipcRenderer'].filter((name) => name in window),
    );
    expect(found).to.deep.equal([]);
  });

  it("can't be changed by the page", async () => {
    const isSame = await running.page.evaluate(() => {
      const { getStartupState } = window.callkey;
      const attempts = [
        () => Object.assign(window.callkey, { getStartupState: null }),
        () => Object.assign(window, { callkey: null }),
        () => Object.defineProperty(window, 'callkey', { value: null }),
      ];
      for (const attempt of attempts) {
        try {
          attempt();
        } catch {
          // Expected.
        }
      }
      return window.callkey.getStartupState === getStartupState;
    });
    expect(isSame).to.equal(true);
  });

  describe('a channel', () => {
    const secret = 'svc_sk_live_canary';
    const wrong: unknown[] = [42, true, [], {}, { unexpected: secret }, [secret], 'x'.repeat(10_001), { id: 1, cancelQueuedCalls: 'yes' }];

    for (const name of Object.values(channelNames)) {
      it(`${name} refuses input with the wrong shape without repeating it`, async () => {
        const outcomes = await running.page.evaluate(
          ([channel, inputs]) =>
            Promise.all(
              inputs.map((input) =>
                (window.callkey as unknown as Anything)[channel]?.(input).then(
                  () => 'done',
                  (error: Error) => error.message,
                ),
              ),
            ),
          [name, wrong] as const,
        );
        const refusal = `Error invoking remote method '${name}': Error: Invalid input for ${name}.`;
        expect(outcomes).to.deep.equal(wrong.map(() => refusal));
        expect(running.output()).not.to.include(secret);
      });
    }

    it('ignores extra arguments', async () => {
      const answer = await running.page.evaluate(() =>
        (window.callkey.listApiKeys as (...inputs: unknown[]) => Promise<unknown>)(undefined, 'more'),
      );
      expect(answer).to.deep.equal({ ok: false, failure: { kind: 'session-ended' } });
    });
  });

  describe('allowed callers', () => {
    const refusal = "Error invoking remote method 'getStartupState': Error: This frame isn’t allowed to make calls.";
    const call = `callkey.getStartupState().then(() => 'answered', (error) => error.message)`;

    it("include the app's page", async () => {
      expect(await running.page.evaluate(call)).to.equal('answered');
    });

    it('exclude a second window with the same page and preload script', async () => {
      const outcome = await running.app.evaluate(
        async ({ app, BrowserWindow }, [preload, code]) => {
          const window = new BrowserWindow({ show: false, webPreferences: { preload: `${app.getAppPath()}${preload}`, sandbox: true } });
          await window.loadURL('app://callkey/index.html');
          const answer: unknown = await window.webContents.executeJavaScript(code);
          window.destroy();
          return answer;
        },
        ['/dist/desktop/preload/preload.cjs', call] as const,
      );
      expect(outcome).to.equal(refusal);
    });

    it('exclude a frame within the page', async () => {
      const outcome = await running.app.evaluate(async ({ BrowserWindow, ipcMain }) => {
        const [window] = BrowserWindow.getAllWindows();
        await window?.webContents.executeJavaScript(`document.body.append(document.createElement('iframe'))`);
        const senderFrame = window?.webContents.mainFrame.frames[0];
        if (!senderFrame) throw new Error('There is no frame.');
        // The preload script doesn't run in frames, so the test calls the handler as Electron would.
        type Handlers = { _invokeHandlers: Map<string, (event: object) => Promise<unknown>> };
        const { _invokeHandlers } = ipcMain as unknown as Handlers;
        return _invokeHandlers
          .get('getStartupState')?.({ senderFrame })
          .then(
            () => 'answered',
            (error: Error) => error.message,
          );
      });
      expect(outcome).to.equal('This frame isn’t allowed to make calls.');
    });

    for (const address of ['about:blank', 'app://callkey.example.com/index.html']) {
      // A separate window for each: one that goes back to the app's page may still be loading it when the next test starts.
      it(`exclude ${address} in the app's window`, async () => {
        const own = await launchConsole();
        const outcome = await own.app.evaluate(
          async ({ BrowserWindow }, [url, code]) => {
            const [window] = BrowserWindow.getAllWindows();
            await window?.loadURL(url);
            return window?.webContents.executeJavaScript(code);
          },
          [address, call] as const,
        );
        await own.close();
        expect(outcome).to.equal(refusal);
      });
    }
  });
});
