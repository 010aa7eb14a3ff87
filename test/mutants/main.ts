// Mutation testing: StrykerJS changes the code in one place after another, and each time a test must fail. It isn't part of npm test.
//   npm run mutants                              everything
//   npm run mutants -- core/domain cli           these folders
//   npm run mutants -- core/domain/sign-in/throttle.ts   one file, with the tests of its folder
// Fails if a surviving mutant isn't listed in test/surviving-mutants.json. Writes the row of each complete folder into test/README.md.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { Stryker } from '@stryker-mutator/core';
import { freshDatabase } from '../support/databases.ts';
import { memoryFolder } from '../support/memory-folder.ts';
import { folders, root } from './folders.ts';

type Result = Awaited<ReturnType<Stryker['runMutationTest']>>[number];
/** `change` identifies a mutant by its line's text and the text that it replaces, which stay the same when other lines move. */
type Mutant = { file: string; line: number; change: string; hasSurvived: boolean };

process.chdir(root);
/** The mutants that no test detects, by file, and why that is acceptable. */
const known: Readonly<Record<string, readonly { why: string; mutants: readonly string[] }[]>> = JSON.parse(
  readFileSync('test/surviving-mutants.json', 'utf8'),
);
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

/** @param texts the text of each file when it was mutated */
function toMutants(results: readonly Result[], texts: ReadonlyMap<string, string>): Mutant[] {
  const counted = results.filter(({ status }) => ['Killed', 'Timeout', 'Survived', 'NoCoverage'].includes(status));
  return counted.map(({ fileName, location: { start, end }, replacement, status }) => {
    const file = relative('.', fileName);
    const lines = (texts.get(file) ?? '').split('\n').slice(start.line - 1, end.line);
    const [first = '', last = ''] = [lines[0], lines.at(-1)];
    const replaced = lines.join('\n').slice(start.column - 1, end.column - 1 - last.length || undefined);
    const change = `${short(first)} │ ${short(replaced)} → ${short(replacement ?? '')}`;
    return { file, line: start.line, change, hasSurvived: status === 'Survived' || status === 'NoCoverage' };
  });
}

function short(code: string): string {
  const line = code.replace(/\s+/g, ' ').trim();
  return line.length <= 80 ? line : `${line.slice(0, 79)}…`;
}

/** Returns the mutants that survived without being listed, and those that are listed but died, in files that were mutated completely. */
function surprises(mutants: readonly Mutant[], files: readonly string[]): { survived: string[]; died: string[] } {
  const survivors = mutants.filter(({ hasSurvived }) => hasSurvived);
  const listed = (file: string) => (known[file] ?? []).flatMap(({ mutants: changes }) => changes);
  const lives = (file: string, change: string) => survivors.some((one) => one.file === file && one.change === change);
  return {
    survived: survivors.flatMap(({ file, line, change }) =>
      listed(file).includes(change) ? [] : `${file}:${line} ${JSON.stringify(change)}`,
    ),
    died: files.flatMap((file) => listed(file).flatMap((change) => (lives(file, change) ? [] : `${file}: ${change}`))),
  };
}

/** Replaces a folder's row in the table of test/README.md. @returns the new row */
function writeRow(name: string, mutants: readonly Mutant[], minutes: number): string {
  const died = mutants.filter(({ hasSurvived }) => !hasSurvived).length;
  const where = `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, ${new Date().toISOString().slice(0, 10)}`;
  const share = ((100 * died) / mutants.length).toFixed(1);
  const row = `| \`${name}\` | ${mutants.length} | ${died} | ${share} % | ${Math.ceil(minutes)} min | ${where} |`;
  const readme = 'test/README.md';
  const text = readFileSync(readme, 'utf8').replace(new RegExp(`^\\| \`${name}\` \\|.*$`, 'm'), () => row);
  writeFileSync(readme, text);
  return row;
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
