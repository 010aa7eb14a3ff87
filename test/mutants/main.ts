// Mutation testing: StrykerJS changes the code in one place after another, and each time a test has to fail. Not a part of npm test.
//   npm run mutants                              everything
//   npm run mutants -- core/domain cli           these folders
//   npm run mutants -- core/domain/sign-in/throttle.ts   one file, with the tests of its folder
// Fails where a mutant survives that test/surviving-mutants.json does not list. Writes the row of each whole folder into test/README.md.
import { mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Stryker } from '@stryker-mutator/core';
import { freshDatabase } from '../support/databases.ts';
import { type Folder, folders, sourcesOf, testsOf } from './folders.ts';
import { compared, type Known, type Mutant, mutantsOf } from './survivors.ts';

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
const say = (line: string) => process.stdout.write(`${line}\n`);

const readme = 'test/README.md';
const known: Known = JSON.parse(readFileSync('test/surviving-mutants.json', 'utf8'));

// Stryker kills its processes: what they leave is in one folder, which this one deletes.
const directory = mkdtempSync(join(inMemory() ?? tmpdir(), 'callkey-mutants-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
Object.assign(process.env, { TMPDIR: directory, TEST_DATABASES: 'sqlite' });
// Made once, before anything is broken: each run only copies it.
process.env['TEST_TEMPLATES'] = JSON.stringify({ 'without rows sqlite': { database: await freshDatabase('sqlite') } });

/** A folder in memory, where there is one with room: SQLite waits for a disk at each commit. Containers often have 64 MB there. */
function inMemory(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return bavail * bsize > 1e9 ? '/dev/shm' : undefined;
  } catch {
    return undefined;
  }
}

async function mutate(folder: Folder, files: readonly string[]): Promise<Mutant[]> {
  // Now: somebody may edit them while it runs.
  const texts = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));
  const stryker = new Stryker({
    mutate: [...files],
    testRunner: 'reloading',
    mochaOptions: { 'no-config': true, require: ['test/support/mutants.ts'], spec: testsOf(folder) },
    plugins: ['./test/mutants/plugins.ts'],
    ignorers: ['sql'],
    coverageAnalysis: 'perTest',
    concurrency: availableParallelism(),
    // In ms, above what its tests take without it. A mutant that hangs costs this much, and a new process.
    timeoutMS: 2_500,
    // What a mutant leaves open must not decide what becomes of many others.
    maxTestRunnerReuse: 40,
    ignorePatterns: ['/dist', '/data'],
    // For compilers. Node strips types, and looks at no tsconfig.json.
    disableTypeChecks: false,
    tsconfigFile: 'none',
    reporters: ['progress-append-only'],
  });
  return mutantsOf(await stryker.runMutationTest(), (file) => texts.get(file) ?? '');
}

/** Replaces a folder's row in the table of test/README.md. */
function writeRow(folder: Folder, mutants: readonly Mutant[], minutes: number): void {
  const died = mutants.filter(({ hasSurvived }) => !hasSurvived).length;
  const percent = ((100 * died) / mutants.length).toFixed(1);
  const machine = `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors`;
  const date = new Date().toISOString().slice(0, 10);
  const row = `| \`${folder.name}\` | ${mutants.length} | ${died} | ${percent} % | ${minutes} min | ${machine}, ${date} |`;
  const text = readFileSync(readme, 'utf8');
  writeFileSync(
    readme,
    text.replace(new RegExp(`^\\| \`${folder.name}\` \\|.*$`, 'm'), () => row),
  );
  say(`\n${row}`);
}

const wanted = process.argv.slice(2).map((path) => path.replace(/\/$/, ''));
const isWanted = (path: string) => wanted.length === 0 || wanted.includes(path);
let runs = 0;
for (const folder of folders) {
  const all = sourcesOf(folder);
  const files = isWanted(folder.name) ? all : all.filter(isWanted);
  if (files.length === 0) continue;
  runs++;
  const startedAt = performance.now();
  const mutants = await mutate(folder, files);
  if (files.length === all.length) writeRow(folder, mutants, Math.ceil((performance.now() - startedAt) / 60_000));
  const { unknown, dead } = compared(mutants, files, known);
  for (const { file, line, change } of unknown) say(`survived: ${file}:${line} ${JSON.stringify(change)}`);
  for (const one of dead) say(`listed, but dies now: ${one}`);
  if (unknown.length > 0) process.exitCode = 1;
}
if (runs === 0) throw new Error(`Nothing of ${wanted.join(', ')} is mutated. Give some of: ${folders.map(({ name }) => name).join(', ')}`);
