import { variableNames } from './config.ts';

/** The minimum length of a name to check, because shorter ones, such as HOST, are similar to many others. */
const shortest = 6;

export type UnknownVariable = { name: string; meant: string };

/**
 * Finds variables that look like ours but have no effect. For example, someone who sets SESSION_SECRET expects it to work.
 *
 * @param environment such as process.env; a variable set to an empty string counts as unset
 */
export function unknownVariables(environment: Readonly<Record<string, string | undefined>>): UnknownVariable[] {
  return Object.entries(environment).flatMap(([name, value]) => {
    if (value === undefined || value === '' || variableNames.includes(name)) return [];
    const meant = closest(name.toUpperCase());
    return meant === undefined ? [] : [{ name, meant }];
  });
}

export function unknownVariableText({ name, meant }: UnknownVariable): string {
  return `The variable ${name} isn't used. Did you mean ${meant}?`;
}

function closest(name: string): string | undefined {
  const candidates = variableNames
    .filter((known) => known.length >= shortest)
    .map((known) => ({ ours: known, distance: editDistance(name, known) }))
    .toSorted((a, b) => a.distance - b.distance);
  const near = candidates.find(({ ours: known, distance }) => distance <= known.length / 5);
  // For example, DIALER_SECRET_FILE or TLS_CERT
  const longer = candidates.find(({ ours: known }) => name.startsWith(`${known}_`) || (name.includes('_') && known.startsWith(`${name}_`)));
  return (near ?? longer)?.ours;
}

/** Returns the number of characters to insert, delete or replace (Levenshtein distance). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...a].entries()) {
    const next = [index + 1];
    for (const [position, otherLetter] of [...b].entries()) {
      const replaced = (row[position] ?? 0) + (letter === otherLetter ? 0 : 1);
      next.push(Math.min(replaced, (row[position + 1] ?? 0) + 1, (next[position] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
