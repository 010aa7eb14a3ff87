import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import Mocha from 'mocha';
import { electronFile, lacksDisplay, rootArgs } from '../../scripts/support/electron-runtime.ts';

/** Returns the path of the first of these programs that's on the `PATH`. The tests don't download a browser. */
export function findProgram(...names: string[]): string | undefined {
  return names
    .map((name) => spawnSync('sh', ['-c', 'command -v "$0"', name], { encoding: 'utf8' }).stdout?.trim() ?? '')
    .find((path) => path !== '');
}

/** Says why the console can't start here. The tests don't download a runtime. */
export function whyNoElectron(): string | undefined {
  // `npm test` has looked, and built the console for all files.
  if (process.env['CONSOLE_IS_BUILT'] === '1') return undefined;
  if (!existsSync(electronFile())) return 'no Electron runtime is installed (npx install-electron)';
  const { status, stderr } = spawnSync(electronFile(), ['--version', ...rootArgs], { encoding: 'utf8', timeout: 10_000 });
  if (status !== 0) return `the Electron runtime doesn't start (${stderr.trim().split('\n', 1)[0]})`;
  return lacksDisplay && spawnSync('Xvfb', ['-help']).error ? 'there is neither a display nor Xvfb to provide one' : undefined;
}

/** Skips a test, or all tests of a group if called from its hook. Adds the reason to the title, because Mocha's report has no other place for it. */
export function skip(context: Mocha.Context, reason: string): never {
  const { test } = context;
  const skipped = test instanceof Mocha.Test ? test : test?.parent;
  if (skipped) skipped.title += ` (skipped: ${reason})`;
  return context.skip();
}

/** Groups tests of the console. If something is missing, they're skipped with the reason, or fail with `CALLKEY_REQUIRE_DESKTOP=1`. */
export function describeUnless(missing: string | undefined, title: string, tests: () => void): void {
  describe(title, function (this: Mocha.Suite) {
    // Starting Electron or a browser takes about a second, but much longer on a busy machine.
    this.timeout(60_000);
    if (missing === undefined) tests();
    else if (process.env['CALLKEY_REQUIRE_DESKTOP'] === '1') {
      it('is tested', () => {
        throw new Error(`The desktop tests are required, but ${missing}.`);
      });
    } else it.skip(`isn't tested: ${missing}`);
  });
}

/** Something that a suite opens and closes. */
type Closable = { close(): unknown };

/** Opens something before a suite's tests, and closes it after them. @returns an object that has its properties once it's open */
export const openOnce = <Opened extends Closable>(open: () => Promise<Opened>) => opened(open, before, after);

/** The same for each test of a suite. The object then has the properties of what was opened for the current test. */
export const openForEach = <Opened extends Closable>(open: () => Promise<Opened>) => opened(open, beforeEach, afterEach);

function opened<Opened extends Closable>(open: () => Promise<Opened>, first: Mocha.HookFunction, last: Mocha.HookFunction): Opened {
  const properties = {} as Opened;
  let close: (() => unknown) | undefined;
  first(async () => {
    const made = await open();
    close = () => made.close();
    Object.assign(properties, made);
  });
  last(async () => {
    await close?.();
    close = undefined;
  });
  return properties;
}
