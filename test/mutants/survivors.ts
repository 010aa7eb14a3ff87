import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { relative } from 'node:path';
import type { Stryker } from '@stryker-mutator/core';

type Result = Awaited<ReturnType<Stryker['runMutationTest']>>[number];
/** `change` identifies a mutant by its line's text and the text that it replaces, which stay the same when other lines move. */
type Mutant = { file: string; line: number; change: string; hasSurvived: boolean };

/** The mutants that no test detects, by file, and why that is acceptable. */
const known: Readonly<Record<string, readonly { why: string; mutants: readonly string[] }[]>> = JSON.parse(
  readFileSync('test/surviving-mutants.json', 'utf8'),
);
const readme = 'test/README.md';

/** @param texts the text of each file when it was mutated */
export function toMutants(results: readonly Result[], texts: ReadonlyMap<string, string>): Mutant[] {
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

/** The mutants that survived without being listed, and those that are listed but died, in files that were mutated completely. */
export function surprises(mutants: readonly Mutant[], files: readonly string[]): { survived: string[]; died: string[] } {
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
export function writeRow(name: string, mutants: readonly Mutant[], minutes: number): string {
  const died = mutants.filter(({ hasSurvived }) => !hasSurvived).length;
  const where = `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, ${new Date().toISOString().slice(0, 10)}`;
  const share = ((100 * died) / mutants.length).toFixed(1);
  const row = `| \`${name}\` | ${mutants.length} | ${died} | ${share} % | ${Math.ceil(minutes)} min | ${where} |`;
  const text = readFileSync(readme, 'utf8').replace(new RegExp(`^\\| \`${name}\` \\|.*$`, 'm'), () => row);
  writeFileSync(readme, text);
  return row;
}
