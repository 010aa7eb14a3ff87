// Mutation testing: StrykerJS changes the code in one place after another, and each time a test must fail. It isn't part of npm test.
//   npm run mutants                              everything
//   npm run mutants -- core/domain cli           these folders
//   npm run mutants -- core/domain/sign-in/throttle.ts   one file, with the tests of its folder
//   npm run mutants -- --record core/dialer      the same, and stores the new counts even if they're higher
// Prints the survivors, and fails if more of them are in a file than survivors.json says. Stores lower counts, files that it doesn't list
// yet, and a complete folder's row in test/README.md.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { freshDatabase } from '../support/databases.ts';
import { memoryFolder } from '../support/memory-folder.ts';
import { type Folder, folders, root } from './folders.ts';

process.chdir(root);
const survivorsFile = 'test/mutants/survivors.json';
/** How many mutants of each file survived. */
const known: Record<string, number> = JSON.parse(readFileSync(survivorsFile, 'utf8'));
const say = (line: string) => process.stdout.write(`${line}\n`);

// Stryker kills its processes. The files that they leave are in one folder, which this process deletes.
const directory = mkdtempSync(join(memoryFolder(1e9) ?? tmpdir(), 'callkey-mutants-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
Object.assign(process.env, { TMPDIR: directory, TEST_DATABASES: 'sqlite' });
// Created once, before anything is mutated. Each run only copies it.
process.env['TEST_TEMPLATES'] = JSON.stringify({ 'without rows sqlite': { database: await freshDatabase('sqlite') } });

function strykerFor(files: readonly string[], spec: readonly string[]): Stryker {
  return new Stryker({
    mutate: [...files],
    testRunner: 'reloading',
    mochaOptions: { 'no-config': true, require: ['test/support/mutants.ts'], spec: [...spec] },
    plugins: ['./test/mutants/plugins.ts'],
    ignorers: ['sql'],
    coverageAnalysis: 'perTest',
    dryRunTimeoutMinutes: 20,
    concurrency: availableParallelism(),
    // In ms, added to the normal duration of the tests. Each mutant that hangs costs this time and a new process.
    timeoutMS: 2_500,
    // Handles that a mutant leaves open must not affect the results of many others.
    maxTestRunnerReuse: 40,
    ignorePatterns: ['/dist', '/data'],
    // These settings are for compilers. Node.js strips types, and doesn't read tsconfig.json.
    disableTypeChecks: false,
    tsconfigFile: 'none',
    reporters: ['clear-text'],
    clearTextReporter: { logTests: false, reportTests: false, reportScoreTable: false, skipFull: true },
  });
}

/** How many mutants a file has, and how many of them no test notices. */
type Count = { mutants: number; survived: number };

async function mutate(files: readonly string[], tests: readonly string[]): Promise<Map<string, Count>> {
  const counts = new Map(files.map((file) => [file, { mutants: 0, survived: 0 }]));
  for (const { fileName, status } of await strykerFor(files, tests).runMutationTest()) {
    const count = counts.get(relative('.', fileName));
    const hasSurvived = status === 'Survived' || status === 'NoCoverage';
    if (!count || !(hasSurvived || status === 'Killed' || status === 'Timeout')) continue;
    count.mutants++;
    if (hasSurvived) count.survived++;
  }
  return counts;
}

/** Returns a folder's row in the table of test/README.md. */
function formatRow(name: string, counts: readonly Count[], minutes: number): string {
  const sum = (column: keyof Count) => counts.reduce((total, count) => total + count[column], 0);
  const [mutants, killed] = [sum('mutants'), sum('mutants') - sum('survived')];
  const where = `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, ${new Date().toISOString().slice(0, 10)}`;
  return `| \`${name}\` | ${mutants} | ${killed} | ${((100 * killed) / mutants).toFixed(1)}% | ${Math.ceil(minutes)} min | ${where} |`;
}

async function run({ name, sources, tests }: Folder, files: readonly string[]): Promise<void> {
  const startedAt = performance.now();
  const counts = await mutate(files, tests);
  const row = formatRow(name, [...counts.values()], (performance.now() - startedAt) / 60_000);
  say(row);
  for (const [file, { survived }] of counts) {
    const limit = known[file] ?? survived;
    if (survived !== limit) say(`${file}: ${survived} survived instead of ${limit}`);
    if (survived > limit && !options.record) process.exitCode = 1;
    else known[file] = survived;
  }
  const kept = Object.entries(known).filter(([file]) => existsSync(file));
  writeFileSync(survivorsFile, `${JSON.stringify(Object.fromEntries(kept.sort()), undefined, 2)}\n`);
  if (files.length < sources.length) return;
  const readme = readFileSync('test/README.md', 'utf8');
  writeFileSync(
    'test/README.md',
    readme.replace(new RegExp(`^\\| \`${name}\` \\|.*$`, 'm'), () => row),
  );
}

const { values: options, positionals } = parseArgs({ options: { record: { type: 'boolean', default: false } }, allowPositionals: true });
const paths = positionals.map((path) => path.replace(/\/$/, ''));
const isChosen = (path: string) => paths.length === 0 || paths.includes(path);
const chosen = folders.map((folder) => ({ folder, files: isChosen(folder.name) ? folder.sources : folder.sources.filter(isChosen) }));
if (chosen.every(({ files }) => files.length === 0))
  throw new Error(`Nothing in ${paths.join(', ')} is mutated. Choose from: ${folders.map(({ name }) => name).join(', ')}`);
for (const { folder, files } of chosen) if (files.length > 0) await run(folder, files);
