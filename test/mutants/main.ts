// Mutation testing: StrykerJS changes the code in one place after another, and each time a test must fail. It isn't part of npm test.
// test/README.md lists the options.
// Prints the survivors, and fails if more of them are in a file than survivors.json says. Stores lower counts, files that it doesn't list
// yet, and a complete folder's row in test/README.md.
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { freshDatabase, memoryFolder } from '../support/databases.ts';
import allFolders from './folders.json' with { type: 'json' };

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
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

/** Lists the files that match these patterns, in this order. A pattern that starts with `!` excludes files. */
function list(patterns: readonly string[]): string[] {
  const exclude = patterns.filter((pattern) => pattern.startsWith('!')).map((pattern) => pattern.slice(1));
  return patterns.flatMap((pattern) => globSync(pattern, { exclude }).sort());
}

/** How many mutants a file has, and how many of them no test notices. */
type Count = { mutants: number; survived: number };

async function mutate(files: string[], spec: string[]): Promise<Map<string, Count>> {
  const counts = new Map(files.map((file) => [file, { mutants: 0, survived: 0 }]));
  const options = { configFile: 'test/mutants/stryker.json', mutate: files, mochaOptions: { spec }, concurrency: availableParallelism() };
  for (const { fileName, status } of await new Stryker(options).runMutationTest()) {
    const count = counts.get(relative('.', fileName));
    const hasSurvived = status === 'Survived' || status === 'NoCoverage';
    if (!count || !(hasSurvived || status === 'Killed' || status === 'Timeout')) continue;
    count.mutants++;
    if (hasSurvived) count.survived++;
  }
  return counts;
}

/** Stores the counts, and fails if a file has more survivors than before. */
function compare(counts: ReadonlyMap<string, Count>): void {
  for (const [file, { survived }] of counts) {
    const limit = known[file] ?? survived;
    if (survived !== limit) say(`${file}: ${survived} survived instead of ${limit}`);
    if (survived > limit && !options.record) process.exitCode = 1;
    else known[file] = survived;
  }
  const kept = Object.entries(known).filter(([file]) => existsSync(file));
  writeFileSync(survivorsFile, `${JSON.stringify(Object.fromEntries(kept.sort()), undefined, 2)}\n`);
}

/** Returns a folder's row in the table of test/README.md. */
function formatRow(name: string, counts: readonly Count[], minutes: number): string {
  const sum = (column: keyof Count) => counts.reduce((total, count) => total + count[column], 0);
  const [mutants, killed] = [sum('mutants'), sum('mutants') - sum('survived')];
  const where = `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, ${new Date().toISOString().slice(0, 10)}`;
  return `| \`${name}\` | ${mutants} | ${killed} | ${((100 * killed) / mutants).toFixed(1)}% | ${Math.ceil(minutes)} min | ${where} |`;
}

const { values: options, positionals } = parseArgs({ options: { record: { type: 'boolean', default: false } }, allowPositionals: true });
const paths = positionals.map((path) => path.replace(/\/$/, ''));
const isChosen = (path: string) => paths.length === 0 || paths.includes(path);
const chosen = Object.entries(allFolders).flatMap(([name, { mutate, spec }]) => {
  const all = list(mutate);
  const files = isChosen(name) ? all : all.filter(isChosen);
  return files.length === 0 ? [] : { name, files, tests: list(spec), isWhole: files.length === all.length };
});
if (chosen.length === 0) throw new Error(`Nothing in ${paths.join(', ')} is mutated. Choose from: ${Object.keys(allFolders).join(', ')}`);
for (const { name, files, tests, isWhole } of chosen) {
  const startedAt = performance.now();
  const counts = await mutate(files, tests);
  const row = formatRow(name, [...counts.values()], (performance.now() - startedAt) / 60_000);
  say(row);
  compare(counts);
  if (!isWhole) continue;
  const readme = readFileSync('test/README.md', 'utf8');
  const oldRow = new RegExp(`^\\| \`${name}\` \\|.*$`, 'm');
  writeFileSync(
    'test/README.md',
    readme.replace(oldRow, () => row),
  );
}
