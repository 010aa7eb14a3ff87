import { readFileSync, writeFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url);
const folder = new URL('results/', import.meta.url);
export const pages = ['README.md', 'scripts/bench/README.md', 'core/docs/scaling.md', 'core/docs/operations.md', 'cli/README.md'];

/** Replaces the stored results of the same name, and the sections of the pages that quote them. */
export function keep(name: string, results: object, sections: Readonly<Record<string, string>>): void {
  writeFileSync(new URL(`${name}.json`, folder), readable(results));
  for (const page of pages) writeFileSync(new URL(page, root), fillIn(readFileSync(new URL(page, root), 'utf8'), sections));
}

/** Formats JSON with a line for each member, but a single line for a list of numbers. Numbers are rounded to eight digits. */
function readable(value: object): string {
  const text = JSON.stringify(value, (_key, member: unknown) => (typeof member === 'number' ? Number(member.toPrecision(8)) : member), 1);
  return `${text.replace(/\[[\s\d.,e+-]+\]/g, (list) => list.replace(/\s+/g, ' '))}\n`;
}

/**
 * Writes sections into a page of Markdown, between the comments `<!-- bench NAME -->` and `<!-- /bench -->`. Sections with
 * other names stay unchanged.
 */
export function fillIn(page: string, sections: Readonly<Record<string, string>>): string {
  return page.replace(/(<!-- bench (\S+) -->\n)(.*?)(<!-- \/bench -->)/gs, (all, begin: string, name: string, _old, end: string) => {
    const text = sections[name];
    return text === undefined ? all : `${begin}\n${text.trim()}\n\n${end}`;
  });
}
