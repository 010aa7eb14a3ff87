import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { LongFile } from './long-file.ts';
import { fillIn } from './pages.ts';
import type { Poolers } from './poolers.ts';
import type { Results } from './run-results.ts';
import type { Soak } from './soak.ts';
import { longFileSection, poolersSection, sectionsOf, soakSection } from './tables.ts';

const root = new URL('../../', import.meta.url);
const folder = new URL('results/', import.meta.url);
const pages = ['README.md', 'scripts/bench/README.md', 'core/docs/scaling.md', 'core/docs/operations.md', 'cli/README.md'];

/** Replaces the results of the last full run, and the tables of the pages that quote them. */
export function keep(results: Results, plot: string): void {
  writeFileSync(new URL('latest.json', folder), readable(results));
  writeFileSync(new URL('growth.svg', folder), plot);
  quote(sectionsOf(results));
}

export function keepSoak(soak: Soak): void {
  writeFileSync(new URL(`soak-${soak.database}.json`, folder), readable(soak));
  quote({ [`soak-${soak.database}`]: soakSection(soak) });
}

export function keepLongFile(found: LongFile): void {
  writeFileSync(new URL('long-file.json', folder), readable(found));
  quote({ 'long-file': longFileSection(found) });
}

export function keepPoolers(found: Poolers): void {
  writeFileSync(new URL('poolers.json', folder), readable(found));
  quote({ poolers: poolersSection(found) });
}

/** JSON with a line for each member, but one for a list of numbers; numbers have eight digits. */
function readable(value: object): string {
  const text = JSON.stringify(value, (_key, one: unknown) => (typeof one === 'number' ? Number(one.toPrecision(8)) : one), 1);
  return `${text.replace(/\[[\s\d.,e+-]+\]/g, (list) => list.replace(/\s+/g, ' '))}\n`;
}

function quote(sections: Readonly<Record<string, string>>): void {
  for (const page of pages) {
    const file = fileURLToPath(new URL(page, root));
    writeFileSync(file, fillIn(readFileSync(file, 'utf8'), sections));
  }
}
