import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { describeBrowser, profileForEach, sharedBrowser, violationsOn } from '../support/browser.ts';
import { button, clickUnderDialog, home } from '../support/console-harness.ts';
import { describeDesktop, launchConsole, watchOver } from '../support/electron.ts';
import { ask, textAt } from '../support/http.ts';
import { openWithProvider, providerSuite, signInForApp, TestBrowser } from '../support/identity-provider.ts';
import { faultyProxy } from '../support/proxies.ts';
import { openOnce } from '../support/suites.ts';
import { until } from '../support/until.ts';

describeBrowser('the console in a browser, with sign-in at a provider,', () => {
  const { harness } = providerSuite();
  const profile = profileForEach(() => harness.url, true);
  let page: Page;
  beforeEach(() => {
    harness.provider.asks = true;
    ({ page } = profile.current);
  });

  async function signInThere(on = page): Promise<void> {
    await button(on, 'Sign in with Example Corp').click();
    await button(on, 'Sign in at Example Corp').click();
  }

  it('redirects to the provider and back to the console, and offers to sign out there as well', async () => {
    await page.goto(harness.url);
    await signInThere();
    await home(page);
    expect(new URL(page.url()).search).to.equal('');
    await page.getByText('You’re now Ada Account (ada@example.com,').waitFor();
    await button(page, 'This is me').click();
    await page.getByText('You’re now').waitFor({ state: 'detached' });
    await page.reload();
    await home(page);
    await button(page, 'Sign out').click();
    await button(page, 'Sign out of Example Corp').click();
    await page.waitForURL(`${harness.provider.issuer}/**`);
  });

  it('refuses an unknown user without saying why, and then lets someone else sign in', async () => {
    harness.provider.person = { subject: 'eve', email: 'eve@example.com', isVerified: true };
    await page.goto(harness.url);
    await signInThere();
    await page.getByText('You couldn’t be signed in.').waitFor();
    await page.reload();
    await button(page, 'Sign in').waitFor();
    expect(await page.getByText('You couldn’t be signed in.').count()).to.equal(0);
  });

  it("says that the provider isn't responding, and signs the user in once it is", async () => {
    harness.provider.intercept = (path, _req, res) => {
      if (path !== '/token') return false;
      res.writeHead(503, { 'Content-Type': 'text/html' }).end('<h1>Down</h1>');
      return true;
    };
    await page.goto(harness.url);
    await signInThere();
    await page.getByText('The provider isn’t responding.').waitFor();
    harness.provider.intercept = () => false;
    // The provider still has its own session of the user, as in the tab below.
    await button(page, 'Sign in with Example Corp').click();
    await home(page);
  });

  it('lets the user sign in again in another tab after the session has ended, and keeps what they typed', async () => {
    await page.goto(harness.url);
    await signInThere();
    await home(page);
    await page.getByRole('button', { name: 'Create API key' }).first().click();
    await page.getByLabel('Name').fill('Half a key');
    await page.getByRole('radio', { name: '1 Year', exact: true }).check();
    await harness.direct.storage.database.write('sessions').delete();
    await clickUnderDialog(page, 'Create Key');
    const dialog = page.getByRole('alertdialog', { name: 'Your session has ended' });
    const [tab] = await Promise.all([
      page.waitForEvent('popup'),
      dialog.getByRole('button', { name: 'Sign in with Example Corp' }).click(),
    ]);
    // The provider still has its own session of the user, so the tab signs in without a form.
    await home(tab);
    await dialog.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Name').inputValue()).to.equal('Half a key');
  });
});

/** Starts another program that tries to listen on a port. @returns its output: whether it listens, and then the address of each request */
function otherProgram(port: string): { next(): Promise<string>; end(): Promise<unknown> } {
  const program = `
    const { createServer } = require('node:http');
    createServer((request, response) => response.end(console.log(request.url)))
      .on('error', ({ code }) => console.log(code)).listen(${port}, '127.0.0.1', () => console.log('listening'));`;
  const child = spawn(process.execPath, ['-e', program], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  watchOver(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    next: async () => String((await lines.next()).value),
    end: () => {
      child.kill();
      return once(child, 'exit');
    },
  };
}

describeDesktop('sign-in with the provider in the app', () => {
  describeBrowser("through the system's browser", () => {
    const harness = openOnce(() => openWithProvider());
    const desktop = openOnce(() => launchConsole());
    let context: BrowserContext;
    before(async () => {
      harness.provider.asks = true;
      context = await (await sharedBrowser()).newContext();
      await desktop.app.evaluate(({ shell }) => {
        const addresses: string[] = [];
        Reflect.set(globalThis, 'addresses', addresses);
        shell.openExternal = async (address) => void addresses.push(address);
      });
    });
    after(() => context.close());

    const opened = () => desktop.app.evaluate(() => Reflect.get(globalThis, 'addresses') as string[]);
    async function start(server = harness.url): Promise<string> {
      const { page } = desktop;
      const before = (await opened()).length;
      await page.getByLabel('Server address').fill(server);
      await page.getByLabel('Email').focus();
      await button(page, 'Sign in with Example Corp').click();
      await until(async () => (await opened()).length > before);
      return (await opened()).at(-1) ?? '';
    }

    /** Starts a sign-in, and sends its code to the app as a browser's tab does. The core gets the code only when `release` is called. */
    async function startExchange() {
      const network = await faultyProxy(harness.url);
      const { promise, resolve: release } = Promise.withResolvers<void>();
      network.faults.push({ path: '/console/oidc/session', fault: promise });
      const browser = new TestBrowser();
      const { search } = new URL(await start(network.url));
      harness.provider.asks = false;
      const flow = await signInForApp(harness, browser, search);
      harness.provider.asks = true;
      const {
        host,
        port,
        search: code,
      } = new URL(textAt(await browser.send('POST', `${harness.url}/console/oidc/hand-over`, flow), 'url'));
      const tab = connect(Number(port), '127.0.0.1');
      tab.write(`GET /${code} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      await until(() => network.seen.some(({ path }) => path === '/console/oidc/session'));
      return { network, release, tab };
    }

    it('has no axe violations on its first screen and when the user confirms it', async () => {
      await desktop.page.emulateMedia({ reducedMotion: 'reduce' });
      await desktop.page.getByLabel('Server address').fill(harness.url);
      await desktop.page.getByLabel('Email').focus();
      await button(desktop.page, 'Sign in with Example Corp').waitFor();
      const violations = await violationsOn(desktop.page);
      const page = await context.newPage();
      await page.emulateMedia({ reducedMotion: 'reduce' });
      await page.goto(await start());
      violations.push(...(await violationsOn(desktop.page)));
      await button(page, 'Sign in at Example Corp').click();
      await page.getByRole('heading', { name: 'Sign in to the app?' }).waitFor();
      violations.push(...(await violationsOn(page)));
      await button(desktop.page, 'Cancel').click();
      await context.clearCookies();
      expect(violations).to.deep.equal([]);
    });

    it('is offered when a server that was unreachable responds', async () => {
      const network = await faultyProxy(harness.url);
      network.faults.push({ status: 503 });
      await desktop.page.getByLabel('Server address').fill(network.url);
      await desktop.page.getByLabel('Email').focus();
      await desktop.page.getByText('The console retries every few seconds.').waitFor();
      await button(desktop.page, 'Sign in with Example Corp').waitFor();
      expect(await desktop.page.getByText('The console retries every few seconds.').count()).to.equal(0);
      await network.close();
    });

    it('can be continued with a copied link, or by opening it again, if the system opens no browser', async () => {
      await desktop.app.evaluate(({ shell }) => {
        const { openExternal } = shell;
        shell.openExternal = async () => {
          shell.openExternal = openExternal;
          throw new Error('no browser');
        };
      });
      const { page } = desktop;
      await page.getByLabel('Server address').fill(harness.url);
      await page.getByLabel('Email').focus();
      await button(page, 'Sign in with Example Corp').click();
      await button(page, 'Copy link').click();
      await button(page, 'Copied').waitFor();
      const link = await desktop.app.evaluate(async ({ clipboard }) => clipboard.readText());
      expect(link).to.match(/[?&]port=\d+&challenge=/);
      const before = (await opened()).length;
      await button(page, 'Open again').click();
      await until(async () => (await opened()).length > before);
      expect((await opened()).at(-1)).to.equal(link);
      const tab = await context.newPage();
      await tab.goto(link);
      await button(tab, 'Sign in at Example Corp').click();
      await button(tab, 'Sign in to the app').click();
      await home(page);
      await button(page, 'Sign out').click();
      await button(page, 'Copy sign-out link').click();
      await button(page, 'Sign out of Example Corp').click();
      await until(async () => (await opened()).at(-1) !== link);
      expect(await desktop.app.evaluate(async ({ clipboard }) => clipboard.readText())).to.equal((await opened()).at(-1));
      await context.clearCookies();
    });

    it('gives another program neither the port while the app waits for the code, nor a session for a code that it receives there afterwards', async () => {
      const port = new URL(await start()).searchParams.get('port') ?? '';
      expect(await otherProgram(port).next()).to.equal('EADDRINUSE');
      const elsewhere = await fetch(`http://127.0.0.2:${port}/`).catch((error: Error) => error.cause);
      expect(elsewhere, 'another address of this computer').to.have.property('code', 'ECONNREFUSED');
      const page = await context.newPage();
      await page.goto((await opened()).at(-1) ?? '');
      await button(page, 'Sign in at Example Corp').click();
      await page.getByRole('heading', { name: 'Sign in to the app?' }).waitFor();
      // The app stops waiting, and the other program listens on the same port before the user confirms.
      await button(desktop.page, 'Cancel').click();
      await button(desktop.page, 'Sign in with Example Corp').waitFor();
      const thief = otherProgram(port);
      expect(await thief.next()).to.equal('listening');
      await button(page, 'Sign in to the app').click();
      const code = /^\/\?code=([\w-]{43})$/.exec(await thief.next())?.[1] ?? '';
      expect(code).to.have.length(43);
      const trade = (verifier: string) => ask('POST', `${harness.url}/console/oidc/session`, { body: { code, verifier } });
      expect((await trade('v'.repeat(43))).status).to.equal(401);
      expect(await harness.direct.storage.database.read('sessions')).to.deep.equal([]);
      expect(await harness.direct.storage.database.read('sign_in_codes'), 'the code is used up').to.deep.equal([]);
      await thief.end();
      await context.clearCookies();
    });

    it('ends a session that starts while the user cancels', async () => {
      const { network, release, tab } = await startExchange();
      await desktop.page.evaluate(() => window.callkey.cancelSignIn());
      release();
      await button(desktop.page, 'Sign in with Example Corp').waitFor();
      expect(network.seen.map(({ method, path }) => `${method} ${path}`)).to.include('DELETE /console/session');
      expect(await harness.direct.storage.database.read('sessions')).to.deep.equal([]);
      tab.destroy();
      await network.close();
    });

    it('succeeds even if the tab is closed before the session starts', async () => {
      const { network, release, tab } = await startExchange();
      tab.destroy();
      // By the time this returns, the app has noticed that the tab was closed.
      await desktop.app.evaluate(() => undefined);
      release();
      await home(desktop.page);
      await button(desktop.page, 'Sign out').click();
      await button(desktop.page, 'Sign in with Example Corp').waitFor();
      await network.close();
    });

    it('gives a session only to the app, after the user has confirmed the sign-in in the browser', async () => {
      const address = await start();
      const port = new URL(address).searchParams.get('port');
      // A made-up code from another program doesn't end the wait.
      const invented = await fetch(`http://127.0.0.1:${port}/?code=${'c'.repeat(43)}`);
      expect(invented.status).to.equal(400);
      const page = await context.newPage();
      await page.goto(address);
      await button(page, 'Sign in at Example Corp').click();
      await page.getByRole('heading', { name: 'Sign in to the app?' }).waitFor();
      // Another app starts to sign in in another tab. Each tab confirms its own app.
      const other = await context.newPage();
      await other.goto(`${harness.url}/console/oidc?port=4711&challenge=${'c'.repeat(43)}`);
      await other.getByRole('heading', { name: 'Sign in to the app?' }).waitFor();
      await button(page, 'Sign in to the app').click();
      await page.getByText('You’re signed in.').waitFor();
      await home(desktop.page);
      // The sign-in was for the app, so the browser isn't signed in to the console.
      await page.goto(harness.url);
      await button(page, 'Sign in with Example Corp').waitFor();
    });
  });
});
