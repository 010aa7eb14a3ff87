// Everything that has to hold: lint, types and every test. Ends with one line that counts, and fails if anything failed or nothing ran.
//   npm test -- test/cli test/http/console.test.ts      only the tests of these folders and files
//   npm test -- --grep revoke                           all else is passed on to mocha
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '../test/support/commands.ts';
import { sharedPostgres } from '../test/support/postgres.ts';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const bin = (name: string) => join('node_modules', '.bin', name);
const say = (line: string) => process.stdout.write(`${line}\n`);

function check(name: string, command: string, args: string[]): boolean {
  say(`\n── ${name}`);
  return spawnSync(command, args, { stdio: 'inherit' }).status === 0;
}

const lint = check('lint', bin('biome'), ['check', '--error-on-warnings', '.']);
// The page, and what the tests do in it, know the DOM; nothing else does.
const projects = ['.', 'desktop/renderer', 'test/desktop'];
const types = projects.every((project) => check(`types of ${project}`, bin('tsc'), ['-p', project]));

const args = process.argv.slice(2);
// What follows an option, as in `--grep test`, is its value.
const paths = args.filter((arg, index) => !args[index - 1]?.startsWith('-') && existsSync(arg));
const mochaArgs = args.filter((arg) => !paths.includes(arg));

/** One process of mocha. */
type Run = { file: string; part?: string };

// What takes longest must not begin last: those that start many processes first, then the largest.
const slowest = [
  'admin/admin',
  'admin/restore',
  'admin/import',
  'dialer/dialer',
  'process/process',
  'process/two-cores',
  'cli/file',
  'cli/call',
];
const rank = (file: string) => (slowest.some((name) => file.endsWith(`${name}.test.ts`)) ? 1e9 : 0) + statSync(file).size;
const files = (paths.length > 0 ? paths : ['test'])
  .flatMap((path) => (statSync(path).isDirectory() ? globSync(join(path, '**', '*.test.ts')) : path))
  .sort((a, b) => rank(b) - rank(a));
const needsConsole = files.some((file) => file.includes(join('test', 'desktop')));
const isBuilt = needsConsole && check('build of the console', 'npm', ['run', '--silent', 'build:desktop']);
const webIsBuilt = check('build of the console for browsers', 'npm', ['run', '--silent', 'build:web']);
const isChaos = (file: string) => file.endsWith('chaos.test.ts');
const chaosParts = ['1/2', '2/2'];
// Chaos holds a core to deadlines, which the other tests would keep it from meeting. Most of it waits.
const stages: { runs: Run[]; atOnce: number }[] = [
  { runs: files.filter((file) => !isChaos(file)).map((file) => ({ file })), atOnce: Math.max(2, availableParallelism()) },
  { runs: files.filter(isChaos).flatMap((file) => chaosParts.map((part) => ({ file, part }))), atOnce: chaosParts.length },
];

type Counts = { passed: number; failed: number; skipped: string[] };
const results: (Counts & { file: string })[] = [];
const directory = mkdtempSync(join(tmpdir(), 'callkey-check-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));

function readCounts(file: string): Counts {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { passed: 0, failed: 0, skipped: [] };
  }
}

/** Runs a file in a process of its own, and shows in one piece what it has written. */
async function run({ file, part = '1/1' }: Run, postgresUrl: string): Promise<void> {
  const countsFile = join(directory, `${results.length}-${Math.random()}.json`);
  const mocha = join('node_modules', 'mocha', 'bin', 'mocha.js');
  const colors = process.stdout.isTTY ? ['--color'] : [];
  const startedAt = performance.now();
  const child = spawn(process.execPath, [mocha, '--reporter', 'test/support/reporter.ts', ...colors, ...mochaArgs, file], {
    env: {
      ...process.env,
      ...bareEnvironment,
      TEST_POSTGRES_URL: postgresUrl,
      COUNTS_FILE: countsFile,
      CHAOS_PART: part,
      CONSOLE_IS_BUILT: isBuilt ? '1' : '0',
      WEB_CONSOLE_IS_BUILT: webIsBuilt ? '1' : '0',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  const counts = readCounts(countsFile);
  // What mocha failed without counting it, such as a file that does not load, counts as one.
  results.push({ ...counts, file, failed: code === 0 ? counts.failed : Math.max(1, counts.failed) });
  if (mochaArgs.length > 0 && code === 0 && counts.passed === 0) return;
  say(`\n── ${file} (${Math.round((performance.now() - startedAt) / 1_000)} s)\n${stdout}${stderr}`.trimEnd());
}

// These end by themselves when they are interrupted, and then this does.
let isInterrupted = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => (isInterrupted = true));

const postgres = await sharedPostgres();
try {
  for (const { runs, atOnce } of stages) {
    const work = async () => {
      for (let next = runs.shift(); next && !isInterrupted; next = runs.shift()) await run(next, postgres.url);
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  }
} finally {
  await postgres.stop();
}

const checks = [lint, types];
const sum = (count: (result: Counts) => number) => results.reduce((total, result) => total + count(result), 0);
const passedTests = sum(({ passed }) => passed);
const passed = passedTests + checks.filter((ok) => ok).length;
const failed = sum((result) => result.failed) + checks.filter((ok) => !ok).length + (isInterrupted ? 1 : 0);
const skipped = results.flatMap((result) => result.skipped);
say('');
for (const title of skipped) say(`skipped: ${title}`);
for (const result of results) if (result.failed > 0) say(`failed: ${result.failed} in ${result.file}`);
say(`\n${passed} passed, ${failed} failed, ${skipped.length} skipped`);
process.exitCode = failed > 0 || passedTests === 0 ? 1 : 0;
