// Runs the linter, the type checker and the tests that need only npm's packages. Ends with one line of totals, and fails if anything failed
// or nothing ran:
//   npm test -- --all                                every test
//   npm test -- --rest                               what `npm test` has left out, for a machine on which it has just passed
//   npm test -- test/cli test/http/console.test.ts   only the tests of these folders and files, without linter and type checker
//   npm test -- --grep revoke                        other options are passed to mocha
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { cleanUp } from './support/clean-up.ts';
import { bareEnvironment } from './support/commands.ts';
import { memoryFolder, sharedPostgres } from './support/databases.ts';
import { whyNoElectron } from './support/suites.ts';
import { makeTemplates } from './support/tenants.ts';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const bin = (name: string) => join('node_modules', '.bin', name);
const print = (line: string) => process.stdout.write(`${line}\n`);
const read = (file: string) => readFileSync(file, 'utf8');

const args = process.argv.slice(2).filter((arg) => arg !== '--all' && arg !== '--rest');
// The value of an option, as in `--grep test`, isn't a path.
const paths = args.filter((arg, index) => !args[index - 1]?.startsWith('-') && existsSync(arg));
const mochaArgs = args.filter((arg) => !paths.includes(arg));
/** Whether only those tests run that the quick ones leave out. */
const isRest = process.argv.includes('--rest');
/** Whether the tests aren't limited to the quick ones. */
const isWhole = isRest || process.argv.includes('--all') || paths.length > 0;

/** The tests that only `--all` runs, because they need other programs, or more than three minutes. */
const leftOut: readonly { what: string; folder: string; mentions?: RegExp }[] = [
  {
    what: 'the console in Chromium, Firefox, WebKit and Electron',
    folder: 'test',
    mentions: /support\/(?:browser|console-harness|electron|screen-walkthrough)\.ts'|\/engine\.ts'/,
  },
  { what: 'attacks', folder: 'test/chaos/(?!keys)' },
  { what: 'shards', folder: 'test/process/shards' },
  { what: 'PostgreSQL servers that fail', folder: 'test/process/failing-postgres' },
  { what: 'proxies', folder: 'test/process/proxies' },
  {
    what: 'cores that stop, start wrongly, or lose their database or provider',
    folder: 'test/process/(?:do-not-call-races|draining|killed-import|outages|provider-tls|start-errors|tls-checks)',
  },
  {
    what: 'commands that are killed, lack a disk or folder, or complete words in three shells',
    folder: 'test/cli/(?:call/(?:cancel-batch|place-file-faults)|completion|surroundings)',
  },
  { what: 'examples in nine languages', folder: 'test/http/retrying' },
  { what: 'packages', folder: 'test/(?:scripts/(?:image|pack-)|cli/package)' },
  {
    what: 'alerts, deployment and its pages',
    folder: 'test/scripts/(?:alerts|deploy|operations|rehearsing)',
  },
];
/** These tests run on SQLite only, unless `--all` runs them on both databases. */
const sqliteOnly = /test.(?:admin(?!.(?:check|schema))|chaos|dialer|http|process)\b/;
/** Files whose tests differ by database. */
const differsByDatabase = /onEachDatabase|onToolDatabases|itOnPostgres|describeAdmin|describeAttacks/;
/** Files with tests that do more as root, or in a session with a keyring. */
const doesMoreAsRoot = /getuid|mountDisk|only root|(?:needs|requires) root|unshare|whyNoSecretService/;
/** The titles of the tests that `npm test` hasn't run in these files, if an ordinary user ran it. */
const titlesOfTheRest = 'on PostgreSQL|root|needs unshare|keychain';

// Use memory if there's enough: the tests create hundreds of databases, each of which takes 10 MB.
process.env['TMPDIR'] = memoryFolder(4e9) ?? tmpdir();

/** How long each file has taken on this machine, in seconds, so that the slowest files can start first. */
const secondsFile = join('node_modules', '.cache', 'callkey-test-seconds.json');
const seconds: Record<string, number> = existsSync(secondsFile) ? JSON.parse(read(secondsFile)) : {};
/**
 * Guesses how many seconds a file takes that hasn't run here yet: one per kilobyte, or two if it opens the console. Some small files are
 * slow: a file that attacks or walks, or opens every screen, gets a minute. One that starts processes gets half a minute, one that starts
 * proxies four, and one that starts machines seven.
 */
function guessSeconds(file: string): number {
  const text = read(file);
  if (text.includes('cloneMachine(')) return 420;
  if (text.includes('startProxy(')) return 240;
  if (/test.(?:chaos|model)./.test(file) || /walkThrough\(|async inspect\(/.test(text)) return 60;
  if (/spawnCore\(|setUpPostgres\(|home\.start\(|sharedCluster\(/.test(text)) return 30;
  return (text.length / 1_000) * (/describe(?:Desktop|Browser)\(/.test(text) ? 2 : 1);
}
const expectedSeconds = (file: string) => (isSkipped(file) ? 0 : (seconds[file] ?? guessSeconds(file)));
const hasElectron = whyNoElectron() === undefined;
const isSkipped = (file: string) => !hasElectron && read(file).includes('describeDesktop(');

/**
 * One mocha process, how many seconds it is expected to take, the value of TEST_DATABASES, which is empty for both, and which titles its tests
 * have, if not any.
 */
type Run = { files: string[]; expected: number; databases: '' | 'sqlite'; grep: string | undefined };

const found = (paths.length > 0 ? paths : ['test']).flatMap((path) =>
  statSync(path).isDirectory() ? globSync(join(path, '**', '*.test.ts')) : path,
);
const isLeftOut = ({ folder, mentions }: (typeof leftOut)[number], file: string) =>
  new RegExp(`^${folder}`).test(file) && (mentions?.test(read(file)) ?? true);
const whyLeftOut = Map.groupBy(paths.length > 0 ? [] : found, (file) => leftOut.find((each) => isLeftOut(each, file))?.what);
const quick = whyLeftOut.get(undefined) ?? [];
/** The walk is longer in the rest. */
const isLongerInRest = (file: string) => read(file).includes('QUICK_TESTS');
const doesMoreInRest = (file: string) =>
  (sqliteOnly.test(file) && differsByDatabase.test(read(file))) || doesMoreAsRoot.test(read(file)) || isLongerInRest(file);
const done = quick.filter((file) => isRest && !doesMoreInRest(file));
const files = isWhole ? found.filter((file) => !done.includes(file)) : quick;
const titlesIn = (file: string) => (isRest && quick.includes(file) && !isLongerInRest(file) ? titlesOfTheRest : undefined);
/**
 * Consoles and browsers keep the processors busy. Other tests spend at least half of their time waiting for a disk, a clock or another
 * process. So both kinds run at the same time, as long as some of each are left.
 */
const atOnce = availableParallelism() + 3;
const withConsole = Math.round(atOnce * 0.4);
const showsConsole = (file: string) => file.includes(join('test', 'desktop'));
const consoles = toRuns(files.filter(showsConsole).sort());
const others = toRuns(files.filter((file) => !showsConsole(file)).sort());

/** Short files share a process, because starting one takes a second of processor time. @returns the longest run first */
function toRuns(sorted: readonly string[]): Run[] {
  const made: Run[] = [];
  // Two for each of those that run at the same time, so that all of them end together.
  const longest = Math.max(90, sorted.reduce((sum, file) => sum + expectedSeconds(file), 0) / (2 * atOnce));
  for (const file of sorted) {
    const expected = expectedSeconds(file);
    const databases = !isWhole && sqliteOnly.test(file) ? 'sqlite' : '';
    const grep = titlesIn(file);
    const last = made.findLast((each) => each.databases === databases && each.grep === grep);
    if (last && last.expected + expected < longest) {
      last.files.push(file);
      last.expected += expected;
    } else made.push({ files: [file], expected, databases, grep });
  }
  return made.sort((a, b) => b.expected - a.expected);
}

type Counts = { passed: number; failed: number; failures: string[]; skipped: string[]; seconds: Record<string, number> };
const results: (Counts & { name: string })[] = [];
const directory = mkdtempSync(join(tmpdir(), 'callkey-check-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));

function readCounts(file: string): Counts {
  try {
    return JSON.parse(read(file));
  } catch {
    return { passed: 0, failed: 0, failures: [], skipped: [], seconds: {} };
  }
}

/** Returns the processor time of this process and all processes that it has waited for, as `getrusage` does; undefined if it's not Linux. */
function readCpuSeconds(): number | undefined {
  if (process.platform !== 'linux') return undefined;
  // The fields after the name in parentheses, starting with the third: utime, stime, cutime and cstime are 14 to 17, in hundredths of a second.
  const fields = read('/proc/self/stat').split(') ').at(-1)?.split(' ') ?? [];
  return Math.round(fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100);
}

type Ended = { ok: boolean; output: string };

async function ended(command: string, args: string[], env: NodeJS.ProcessEnv = process.env): Promise<Ended> {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { ok: code === 0, output: stdout + stderr };
}

async function check(name: string, command: string, args: string[]): Promise<boolean> {
  const { ok, output } = await ended(command, args);
  print(`\n── ${name}${ok ? '' : ' (failed)'}\n${output}`.trimEnd());
  return ok;
}

/** Skips files that haven't changed since the last run. */
const incremental = (project: string) => [
  '--incremental',
  '--tsBuildInfoFile',
  join('node_modules', '.cache', `callkey-types-${project.replaceAll(/\W/g, '-')}.tsbuildinfo`),
];

/** Runs the checks one after the other, at the same time as the tests. */
async function checkSources(): Promise<boolean[]> {
  const results = [await check('lint', bin('biome'), ['check', '--error-on-warnings', '.'])];
  // Only the page and the tests that run inside it can use the DOM.
  for (const project of ['.', 'desktop/renderer', 'test/desktop'])
    results.push(await check(`types of ${project}`, bin('tsc'), ['-p', project, '--singleThreaded', ...incremental(project)]));
  return results;
}

const mocha = [join('node_modules', 'mocha', 'bin', 'mocha.js'), '--reporter', 'test/support/reporter.ts'];

/** Runs files in a separate process, and prints its output in one piece. */
async function run({ files: ownFiles, databases, grep }: Run): Promise<void> {
  const [first = '', ...others] = ownFiles;
  const name = others.length > 0 ? `${first} and ${others.length} more` : first;
  const countsFile = join(directory, `${results.length}-${Math.random()}.json`);
  const colors = process.stdout.isTTY ? ['--color'] : [];
  const startedAt = performance.now();
  const titles = grep === undefined ? [] : ['--grep', grep];
  const { ok, output } = await ended(process.execPath, [...mocha, ...colors, ...titles, ...mochaArgs, ...ownFiles], {
    ...process.env,
    ...bareEnvironment,
    COUNTS_FILE: countsFile,
    ...(databases === '' ? {} : { TEST_DATABASES: databases }),
    ...(isWhole ? {} : { QUICK_TESTS: '1' }),
    CONSOLE_IS_BUILT: isBuilt ? '1' : '0',
    WEB_CONSOLE_IS_BUILT: webIsBuilt ? '1' : '0',
  });
  const counts = readCounts(countsFile);
  // A failure that mocha doesn't count, such as a file that can't be loaded, counts as one.
  results.push({ ...counts, name, failed: ok ? counts.failed : Math.max(1, counts.failed) });
  if (mochaArgs.length > 0 && ok && counts.passed === 0) return;
  if (isWhole && !isRest && mochaArgs.length === 0)
    for (const [file, took] of Object.entries(counts.seconds)) seconds[file] = Math.round(took);
  print(`\n── ${name} (${Math.round((performance.now() - startedAt) / 1_000)} s)\n${output}`.trimEnd());
}

// The child processes end by themselves when they're interrupted, and then this process ends as well.
let isInterrupted = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => (isInterrupted = true));

const sources = paths.length > 0 || isRest ? Promise.resolve([]) : checkSources();
// Built once for all files, because two builds at the same time would overwrite each other and the files of running tests.
const build = (name: string, script: string) => check(name, 'npm', ['run', '--silent', script]);
const needsConsole = isWhole && hasElectron && consoles.length + others.length > 1 && files.some(showsConsole);
const prepared = sharedPostgres().then(async (postgres) => {
  process.env['TEST_POSTGRES_URL'] = postgres.url;
  process.env['TEST_TEMPLATES'] = await makeTemplates();
  return postgres;
});
const [postgres, isBuilt, webIsBuilt] = await Promise.all([
  prepared,
  needsConsole && build('build of the desktop console', 'build:desktop'),
  // A single process builds it only if its tests need it.
  consoles.length + others.length > 1 && build('build of the web console', 'build:web'),
]);
try {
  const work = async (_: unknown, index: number) => {
    const [preferred, remaining] = index < withConsole ? [consoles, others] : [others, consoles];
    const take = () => preferred.shift() ?? remaining.shift();
    for (let next = take(); next && !isInterrupted; next = take()) await run(next);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
} finally {
  await cleanUp();
  await postgres.stop();
}
mkdirSync(dirname(secondsFile), { recursive: true });
writeFileSync(secondsFile, JSON.stringify(seconds));

const checks = await sources;
const sum = (count: (result: Counts) => number) => results.reduce((total, result) => total + count(result), 0);
const passedTests = sum(({ passed }) => passed);
const passed = passedTests + checks.filter((ok) => ok).length;
const failed = sum((result) => result.failed) + checks.filter((ok) => !ok).length + (isInterrupted ? 1 : 0);
const skipped = results.flatMap((result) => result.skipped);
print('');
if (isRest)
  print(
    `not repeated: lint, types, ${done.length} files, and of others the tests that npm test has run on SQLite, without root and a keyring`,
  );
else if (paths.length === 0) {
  const leavesOut = isWhole ? 'npm test leaves out' : 'left out';
  for (const [what, { length }] of whyLeftOut)
    if (what !== undefined) print(`${leavesOut}: ${what} (${length} ${length === 1 ? 'file' : 'files'})`);
  print(`${leavesOut}: PostgreSQL for most of admin, dialer, HTTP and processes`);
  if (!isWhole) print('Run everything with: npm test -- --all');
}
for (const title of skipped) print(`skipped: ${title}`);
// Repeated at the end, because a CI log often shows only its end.
for (const { name, failed, failures } of results)
  for (const failure of failures.length > 0 ? failures : failed > 0 ? ['its test process'] : []) print(`failed: ${failure} (${name})`);
const cpu = readCpuSeconds();
print(`\n${Math.round(performance.now() / 1_000)} s${cpu === undefined ? '' : `, ${cpu} s of processor time`}`);
print(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
process.exitCode = failed > 0 || passedTests === 0 ? 1 : 0;
