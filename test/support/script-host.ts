// Runs scripts of the project one after the other in this process, each as if it were alone: with its own module, arguments, environment,
// folder, streams and exit code. Their imports, which take most of a separate process's time, are loaded only once.
import { flushCompileCache } from 'node:module';
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
  // Changed instead of replaced, because native code reads it as well.
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(directory);
  process.exitCode = undefined;
  try {
    // A different query makes it a different module, but not the modules that it imports.
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
  last = last.then(async () => {
    process.send?.(await run(job, ++turn));
    // Store the compiled code now, because this process ends by being killed.
    if (turn === 1) flushCompileCache();
  });
});
