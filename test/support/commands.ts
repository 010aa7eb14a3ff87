import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export type Ended = { code: number; stdout: string; stderr: string };

const compiled = fileURLToPath(new URL('../../node_modules/.cache/callkey-tests', import.meta.url));
const { PATH = '', HOME = '', NODE_COMPILE_CACHE = compiled } = process.env;
/** What every program of ours is started with: nothing that configures it, and a place to keep compiled code, which halves its start. */
export const bareEnvironment = { PATH, HOME, NODE_COMPILE_CACHE };

/** Runs a script of the project as a process of its own. */
export async function runScript(
  script: string,
  args: string[],
  { env = {}, input = '', directory = process.cwd() }: { env?: Record<string, string>; input?: string; directory?: string } = {},
): Promise<Ended> {
  const file = fileURLToPath(new URL(`../../${script}`, import.meta.url));
  const child = spawn(process.execPath, [file, ...args], { env: { ...bareEnvironment, ...env }, stdio: 'pipe', cwd: directory });
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { code, stdout, stderr };
}
