import { expect } from 'chai';
import { requestNames } from '../../desktop/core-requests.ts';
import { functionNames, type Result } from '../../desktop/ipc.ts';
import { describeDesktop, launchConsole } from '../support/electron.ts';
import { openOnce } from '../support/suites.ts';

type Anything = Record<string, (input?: unknown) => Promise<unknown>>;

describeDesktop('the bridge to the page', () => {
  const running = openOnce(() => launchConsole());

  it('exposes only the listed functions', async () => {
    expect(await running.page.evaluate(() => Object.keys(window.callkey).sort())).to.deep.equal([
      'awaitStorage',
      'cancelExport',
      'cancelSignIn',
      'capabilities',
      'closeWindow',
      'confirmApp',
      'copySecret',
      'copyText',
      'dismissSecret',
      'enterCode',
      'forgetServer',
      'getSignInOptions',
      'getStartupState',
      'holdsSecret',
      'identifyApiKey',
      'listServers',
      'markServer',
      'offerCommands',
      'onCommand',
      'onExportProgress',
      'onLink',
      'onSessionChange',
      'openSignInLink',
      'readClockLead',
      'readLink',
      'readSignInLink',
      'request',
      'saveExport',
      'saveFile',
      'saveSecret',
      'selectServer',
      'setTenancy',
      'signIn',
      'signInWithProvider',
      'signOut',
      'signOutOfProvider',
    ]);
  });

  it("is the only global that a normal page doesn't have", async () => {
    const plain = await running.app.evaluate(async ({ BrowserWindow }) => {
      const window = new BrowserWindow({ show: false });
      await window.loadURL('app://callkey/index.html');
      const names = await window.webContents.executeJavaScript('Object.getOwnPropertyNames(window)');
      window.destroy();
      return names as string[];
    });
    const own = await running.page.evaluate(() => Object.getOwnPropertyNames(window));
    // Playwright adds its own globals.
    expect(own.filter((name) => !plain.includes(name) && !/playwright/i.test(name))).to.deep.equal(['callkey']);
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
          // The attempt must fail, but may do so silently.
        }
      }
      return window.callkey.getStartupState === getStartupState;
    });
    expect(isSame).to.equal(true);
  });

  describe('a function', () => {
    const secret = 'svc_sk_live_canary';
    const wrong: unknown[] = [42, true, [], {}, { unexpected: secret }, [secret], 'x'.repeat(10_001), { id: 1, cancelQueuedCalls: 'yes' }];

    for (const name of Object.values(functionNames)) {
      it(`${name} refuses input with the wrong shape, and shows none of it in the error or output`, async () => {
        const outcomes = await running.page.evaluate(
          ([name, inputs]) =>
            Promise.all(
              inputs.map((input) =>
                (window.callkey as unknown as Anything)[name]?.(input).then(
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
        (window.callkey.listServers as (...inputs: unknown[]) => Promise<unknown>)(undefined, 'more'),
      );
      expect(answer).to.deep.equal([]);
    });
  });

  describe('a request to the core', () => {
    const secret = 'svc_sk_live_canary';
    const refusal = "Error invoking remote method 'request': Error: Invalid input for request.";
    /** Sends these requests from the page. @returns for each of them `done`, the kind of its failure, or an error's message */
    const listOutcomes = (requests: readonly (readonly [name: string, input: unknown])[]) =>
      running.page.evaluate(
        (all) =>
          Promise.all(
            all.map(([name, input]) =>
              (window.callkey.request as (name: string, input: unknown) => Promise<Result<unknown>>)(name, input).then(
                (result) => (result.ok ? 'done' : result.failure.kind),
                (error: Error) => error.message,
              ),
            ),
          ),
        requests,
      );

    it("is allowed only for session routes that don't return a file", async () => {
      const others = ['signIn', 'signOut', 'exportCalls', 'exportActivity', 'placeCall', 'reportOutcome', 'toString', '__proto__', ''];
      expect(await listOutcomes(others.map((name) => [name, {}]))).to.deep.equal(others.map(() => refusal));
    });

    it("is refused unless its route's parameters and fields have the right types, and the error shows none of them", async () => {
      const wrong = [
        undefined,
        null,
        42,
        [],
        'text',
        { unexpected: secret },
        { id: 1, cancelQueuedCalls: true },
        { id: secret, unexpected: {} },
      ];
      const requests = requestNames.flatMap((name) => wrong.map((input) => [name, input] as const));
      expect(requests.length).to.be.greaterThan(200);
      expect(new Set(await listOutcomes(requests))).to.deep.equal(new Set([refusal]));
      expect(running.output()).not.to.include(secret);
    });

    it('is refused with a path parameter that can’t be an ID, a field of the wrong type, or text of more than 10,000 characters', async () => {
      const key = { name: 'a', expiration: { kind: 'none' }, timeZone: 'UTC' };
      const requests = [
        ['showApiKey', { id: '../session', timeZone: 'UTC' }],
        ['showApiKey', { id: '', timeZone: 'UTC' }],
        ['createApiKey', { ...key, expiration: { kind: 'years', years: 6 } }],
        ['createApiKey', { ...key, expiration: { kind: 'none', more: 1 } }],
        ['createApiKey', { ...key, name: 'x'.repeat(10_001) }],
        ['createUser', { email: 'a', name: 'a', userType: 'operator' }],
        ['selectTenancy', { kind: 'campaign', id: 'some' }],
        ['listUsers', { search: 'x'.repeat(10_001) }],
        ['listUsers', { search: { more: 1 } }],
        ['revokeApiKeys', { ids: [1] }],
      ] as const;
      expect(await listOutcomes(requests)).to.deep.equal(requests.map(() => refusal));
    });

    it("reaches the core if only its content is invalid, since the form shows the core's message", async () => {
      const requests = [
        ['createApiKey', { name: '', expiration: { kind: 'custom', date: '' }, timeZone: '' }],
        ['setUp', { partner: '', account: '', campaign: '' }],
        ['createAccount', { name: '', partnerId: '' }],
        ['listCalls', { id: 'some', from: '', to: 'x', timeZone: '', state: null, apiKey: '', search: 'x'.repeat(9_999), cursor: null }],
      ] as const;
      expect(await listOutcomes(requests)).to.deep.equal(requests.map(() => 'session-ended'));
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

    // The last tests, because the window then shows another page.
    for (const address of ['about:blank', 'app://callkey.example.com/index.html']) {
      it(`exclude ${address} in the app's window`, async () => {
        const outcome = await running.app.evaluate(
          async ({ BrowserWindow }, [url, code]) => {
            const [window] = BrowserWindow.getAllWindows();
            await window?.loadURL(url);
            return window?.webContents.executeJavaScript(code);
          },
          [address, call] as const,
        );
        expect(outcome).to.equal(refusal);
      });
    }
  });
});
