import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readFiles } from '../support/cli.ts';
import { openCore } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import { describeDesktop, launchConsole, type RunningConsole } from '../support/electron.ts';
import { faultyProxy } from '../support/proxies.ts';
import { openOnce } from '../support/suites.ts';
import { password } from '../support/tenants.ts';

const args = ['--password-store=basic'];
const secret = 'a secret that was copied';
const copy = ({ page }: RunningConsole, text: string) => page.evaluate((value) => window.callkey.copySecret(value), text);
const copyElsewhere = ({ app }: RunningConsole) => app.evaluate(async ({ clipboard }) => clipboard.writeText('a shopping list'));

describeDesktop('the console, when it handles secrets,', () => {
  it('keeps the session’s cookie in the main process, out of every page and file, and says why it doesn’t store the session without a keyring', async () => {
    await using cleanup = new AsyncDisposableStack();
    const harness = await openCore();
    cleanup.defer(() => harness.close());
    const network = await faultyProxy(harness.core.url);
    cleanup.defer(() => network.close());
    const running = await launchConsole({ args });
    cleanup.defer(() => running.close());
    // While the page is loading, it cancels sign-ins, so this waits for its heading.
    await running.page.locator('h1').first().waitFor();
    const input = { server: network.url, email: 'ada@example.com', password, keepSignedIn: true };
    const answer = await running.page.evaluate((argument) => window.callkey.signIn(argument), input);
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
});

describeDesktop('a copied secret', () => {
  const running = openOnce(() => launchConsole({ args }));
  before(async () => {
    // Replaces the main process's timers with timers that the test runs.
    await running.app.evaluate(() => {
      const held: (() => unknown)[] = [];
      const set = globalThis.setTimeout;
      const hold = (run: () => unknown, afterMs = 0) => {
        if (afterMs === 60_000) held.push(run);
        return set(run, afterMs);
      };
      Object.assign(globalThis, { held, setTimeout: hold });
    });
  });

  const clipboardText = () => running.app.evaluate(async ({ clipboard }) => clipboard.readText());
  /** @returns how many timers there were */
  const runHeldTimers = () =>
    running.app.evaluate(async () => {
      const { held } = globalThis as unknown as { held: (() => unknown)[] };
      const due = held.splice(0);
      for (const run of due) await run();
      return due.length;
    });

  it('is cleared from the clipboard after a minute', async () => {
    await copy(running, secret);
    expect(await clipboardText()).to.equal(secret);
    expect(await runHeldTimers()).to.equal(1);
    expect(await clipboardText()).to.equal('');
  });

  it('is the only text that the console clears: a copied ID stays', async () => {
    await running.page.evaluate(() => window.callkey.copyText('an id'));
    expect(await clipboardText()).to.equal('an id');
    expect(await runHeldTimers()).to.equal(0);
  });

  it("isn't cleared if something else was copied since", async () => {
    await copy(running, secret);
    await copyElsewhere(running);
    expect(await runHeldTimers()).to.equal(1);
    expect(await clipboardText()).to.equal('a shopping list');
  });

  it('is cleared from the clipboard when the app quits', async () => {
    await copy(running, secret);
    const file = join(freshDirectory(), 'clipboard');
    // Linux clears the clipboard when the app ends, so this reads it just before.
    await running.app.evaluate(async ({ app, clipboard }, path) => {
      const { writeFileSync: write } = process.getBuiltinModule('node:fs');
      const quit = app.quit.bind(app);
      // The app quits twice: the first time, it delays quitting until its work is done.
      app.quit = async () => {
        write(path, await clipboard.readText());
        quit();
      };
    }, file);
    await running.close();
    expect(readFileSync(file, 'utf8')).to.equal('');
  });
});
