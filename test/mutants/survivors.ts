import { relative } from 'node:path';
import type { Stryker } from '@stryker-mutator/core';

/** By file: mutants that no test notices, and why that is all right. */
export type Known = Readonly<Record<string, readonly { why: string; mutants: readonly string[] }[]>>;

/** `change` names a mutant by the line that it is in and by what it replaces, which stay when other lines move. */
export type Mutant = { file: string; line: number; change: string; hasSurvived: boolean };

/** @param textOf the text of a file, as it was mutated */
export function mutantsOf(results: Awaited<ReturnType<Stryker['runMutationTest']>>, textOf: (file: string) => string): Mutant[] {
  const counted = results.filter(({ status }) => ['Killed', 'Timeout', 'Survived', 'NoCoverage'].includes(status));
  return counted.map((result) => {
    const file = relative('.', result.fileName);
    const { start, end } = result.location;
    const lines = textOf(file)
      .split('\n')
      .slice(start.line - 1, end.line);
    const first = lines[0] ?? '';
    const replaced = lines
      .map((line, index) => line.slice(index === 0 ? start.column - 1 : 0, index === lines.length - 1 ? end.column - 1 : undefined))
      .join('\n');
    const change = `${short(first)} │ ${short(replaced)} → ${short(result.replacement ?? '')}`;
    return { file, line: start.line, change, hasSurvived: result.status === 'Survived' || result.status === 'NoCoverage' };
  });
}

function short(code: string): string {
  const line = code.replace(/\s+/g, ' ').trim();
  return line.length <= 80 ? line : `${line.slice(0, 79)}…`;
}

/** What survives and has no reason in the list, and what has one and dies now. Of files that were mutated as a whole. */
export function compared(mutants: readonly Mutant[], files: readonly string[], known: Known): { unknown: Mutant[]; dead: string[] } {
  const survivors = mutants.filter(({ hasSurvived }) => hasSurvived);
  const listed = (file: string) => (known[file] ?? []).flatMap(({ mutants: changes }) => changes);
  return {
    unknown: survivors.filter(({ file, change }) => !listed(file).includes(change)),
    dead: files.flatMap((file) =>
      listed(file)
        .filter((change) => !survivors.some((survivor) => survivor.file === file && survivor.change === change))
        .map((change) => `${file}: ${change}`),
    ),
  };
}
