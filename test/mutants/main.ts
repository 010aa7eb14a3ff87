// Mutation testing: StrykerJS changes the code in one place after another, and each time a test must fail. It isn't part of npm test.
//   npm run mutants                              everything
//   npm run mutants -- core/domain cli           these folders
//   npm run mutants -- core/domain/sign-in/throttle.ts   one file, with the tests of its folder
// Fails if a surviving mutant isn't listed in test/surviving-mutants.json. Writes the row of each complete folder into test/README.md.
import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Stryker } from '@stryker-mutator/core';
import { freshDatabase } from '../support/databases.ts';

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
// These modules read files of the project.
const { folders } = await import('./folders.ts');
const { toMutants, surprises, writeRow } = await import('./survivors.ts');
const say = (line: string) => process.stdout.write(`${line}\n`);

// Stryker kills its processes. The files that they leave are in one folder, which this process deletes.
const directory = mkdtempSync(join(inMemory() ?? tmpdir(), 'callkey-mutants-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
Object.assign(process.env, { TMPDIR: directory, TEST_DATABASES: 'sqlite' });
// Created once, before anything is mutated. Each run only copies it.
process.env['TEST_TEMPLATES'] = JSON.stringify({ 'without rows sqlite': { database: await freshDatabase('sqlite') } });

/** A folder in memory if it has enough space (containers often have 64 MB), because SQLite waits for a disk at each commit. */
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
    // In ms, added to the normal duration of the tests. Each mutant that hangs costs this time and a new process.
    timeoutMS: 2_500,
    // Handles that a mutant leaves open must not affect the results of many others.
    maxTestRunnerReuse: 40,
    ignorePatterns: ['/dist', '/data'],
    // These settings are for compilers. Node.js strips types, and doesn't read tsconfig.json.
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
  // The files are read now, because someone may edit them during the run.
  const texts = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));
  const startedAt = performance.now();
  const mutants = toMutants(await strykerFor(files, tests).runMutationTest(), texts);
  if (files.length === sources.length) say(`\n${writeRow(name, mutants, (performance.now() - startedAt) / 60_000)}`);
  const { survived, died } = surprises(mutants, files);
  for (const one of survived) say(`survived: ${one}`);
  for (const one of died) say(`listed, but dies now: ${one}`);
  if (survived.length > 0) process.exitCode = 1;
}
