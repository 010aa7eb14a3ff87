import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { freshDirectory } from '../support/databases.ts';
import { describeDesktop, launchConsole, type RunningConsole } from '../support/electron.ts';
import { openOnce } from '../support/suites.ts';

const args = ['--password-store=basic'];
const secret = 'a secret that was copied';
const copy = ({ page }: RunningConsole, text: string) => page.evaluate((value) => window.callkey.copySecret(value), text);
const copyElsewhere = ({ app }: RunningConsole) => app.evaluate(async ({ clipboard }) => clipboard.writeText('a shopping list'));

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
