import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { consoleEnvironment } from '../../support/electron.ts';

/** The functions that the tests need from a browser. They control it over classic or bidirectional WebDriver. */
export type Driver = {
  goTo(url: string): Promise<void>;
  /** Evaluates an expression in the page, and waits for a promise. @returns a copy of its value */
  evaluate(expression: string): Promise<unknown>;
  /** Performs input actions. Both protocols use the same format for them (W3C WebDriver, 17.5). */
  perform(actions: readonly object[]): Promise<void>;
  resize(size: { width: number; height: number }): Promise<void>;
  screenshot(): Promise<Buffer>;
  close(): Promise<void>;
};

/** Starts a program that is killed together with its children, at the latest when the tests end. */
export async function startProgram(
  path: string,
  args: readonly string[],
  settings: Record<string, string> = {},
): Promise<{ stderr: Readable; kill(): Promise<void> }> {
  const env = await consoleEnvironment({ TZ: 'Europe/Berlin', LANG: 'en_GB.UTF-8', ...settings });
  const child = spawn(path, args, { env, stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  const ended = once(child, 'exit');
  const killAll = () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  };
  process.once('exit', killAll);
  return {
    stderr: child.stderr.resume(),
    async kill() {
      killAll();
      process.off('exit', killAll);
      await ended;
    },
  };
}
