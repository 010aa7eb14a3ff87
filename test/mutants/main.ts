// Mutation testing: StrykerJS changes the code in one place after another, and each time a test has to fail. Not a part of npm test.
//   npm run mutants                              everything
//   npm run mutants -- core/domain cli           these folders
//   npm run mutants -- core/domain/sign-in/throttle.ts   one file, with the tests of its folder
// Fails if a mutant survives that test/surviving-mutants.json doesn't list. Writes the row of each whole folder into test/README.md.
import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Stryker } from '@stryker-mutator/core';
import { freshDatabase } from '../support/databases.ts';

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
// They read files of the project.
const { folders } = await import('./folders.ts');
const { mutantsOf, surprises, writeRow } = await import('./survivors.ts');
const say = (line: string) => process.stdout.write(`${line}\n`);

// Stryker kills its processes: what they leave is in one folder, which this one deletes.
const directory = mkdtempSync(join(inMemory() ?? tmpdir(), 'callkey-mutants-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
Object.assign(process.env, { TMPDIR: directory, TEST_DATABASES: 'sqlite' });
// Made once, before anything is broken: each run only copies it.
process.env['TEST_TEMPLATES'] = JSON.stringify({ 'without rows sqlite': { database: await freshDatabase('sqlite') } });

/** A folder in memory, if there is one with room: SQLite waits for a disk at each commit. Containers often have 64 MB there. */
function inMemory(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return bavail * bsize > 1e9 ? '/dev/shm' : undefined;
  } catch {
    return undefined;
  }
}

function strykerFor(files: readonly string[], spec: readonly string[]): Stryker {
  return new Stryker({
    mutate: [...files],
    testRunner: 'reloading',
    mochaOptions: { 'no-config': true, require: ['test/support/mutants.ts'], spec: [...spec] },
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
}

const paths = process.argv.slice(2).map((path) => path.replace(/\/$/, ''));
const isChosen = (path: string) => paths.length === 0 || paths.includes(path);
const chosen = folders.map((folder) => ({ ...folder, files: isChosen(folder.name) ? folder.sources : folder.sources.filter(isChosen) }));
if (chosen.every(({ files }) => files.length === 0))
  throw new Error(`Nothing in ${paths.join(', ')} is mutated. Choose from: ${folders.map(({ name }) => name).join(', ')}`);
for (const { name, sources, files, tests } of chosen.filter(({ files }) => files.length > 0)) {
  // Now: someone may edit them while it runs.
  const texts = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));
  const startedAt = performance.now();
  const mutants = mutantsOf(await strykerFor(files, tests).runMutationTest(), texts);
  if (files.length === sources.length) say(`\n${writeRow(name, mutants, (performance.now() - startedAt) / 60_000)}`);
  const { survived, died } = surprises(mutants, files);
  for (const one of survived) say(`survived: ${one}`);
  for (const one of died) say(`listed, but dies now: ${one}`);
  if (survived.length > 0) process.exitCode = 1;
}
