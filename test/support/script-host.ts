// Runs scripts of the project one after the other in this process, each as if it were the only one: its own module, arguments, environment,
// folder, streams and exit code. What they import is loaded once, which takes most of the time of a process of their own.
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

export type Job = { file: string; args: string[]; env: Record<string, string>; input: string; directory: string };

async function run({ file, args, env, input, directory }: Job, turn: number): Promise<{ code: number; stdout: string; stderr: string }> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const written = Promise.all([text(stdout), text(stderr)]);
  for (const [name, value] of Object.entries({ stdout, stderr, stdin: Readable.from([input]) }))
    Object.defineProperty(process, name, { value, configurable: true });
  process.argv = [process.execPath, file, ...args];
  // Changed, not replaced: what is not JavaScript reads it, too.
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(directory);
  process.exitCode = undefined;
  try {
    // With another query, it is another module; those that it imports are not.
    await import(`${pathToFileURL(file).href}?${turn}`);
  } catch (error) {
    stderr.write(String(error));
    process.exitCode = 1;
  }
  for (const signal of ['SIGINT', 'SIGTERM']) process.removeAllListeners(signal);
  stdout.end();
  stderr.end();
  const [out, err] = await written;
  return { code: Number(process.exitCode ?? 0), stdout: out, stderr: err };
}

let turn = 0;
let last: Promise<unknown> = Promise.resolve();
process.on('message', (job: Job) => {
  last = last.then(async () => process.send?.(await run(job, ++turn)));
});
