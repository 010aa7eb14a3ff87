import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bareEnvironment } from './commands.ts';
import { freshDirectory } from './databases.ts';

/** Whether strace is installed and allowed to trace. */
export const canTrace = () => spawnSync('strace', ['-qq', '-e', 'trace=none', 'true']).status === 0;

/** A successful system call; `paths` are the full paths that it names. */
type SystemCall = { name: string; paths: string[] };

/** Runs a script under strace. @returns what it created, renamed, linked and synced, in order */
export async function runTraced(
  script: string,
  args: string[],
  { env = {}, directory = process.cwd() }: { env?: Record<string, string>; directory?: string },
): Promise<{ code: number; calls: SystemCall[] }> {
  const file = join(freshDirectory(), 'trace');
  const which = 'trace=mkdir,rename,renameat2,link,linkat,fsync,fdatasync';
  const command = ['-f', '-y', '-qq', '-z', '-s', '4096', '-e', which, '-o', file, process.execPath, script, ...args];
  const child = spawn('strace', command, { env: { ...bareEnvironment, ...env }, stdio: 'ignore', cwd: directory });
  const [code] = await once(child, 'exit');
  return { code, calls: readFileSync(file, 'utf8').split('\n').flatMap(parseCall) };
}

function parseCall(line: string): SystemCall[] {
  const [, name, args = ''] = /^\d+ +(\w+)\((.*)/.exec(line) ?? [];
  const paths = [...args.matchAll(/"([^"]*)"|<(\/[^>]*)>/g)].map(([, quoted, opened]) => quoted ?? opened ?? '');
  return name === undefined ? [] : [{ name, paths }];
}
