import { variableNames } from './config.ts';

/** The minimum length of a name to check, because shorter ones, such as HOST, are similar to many others. */
const minLength = 6;

export type UnknownVariable = { name: string; suggestion: string };

/**
 * Finds variables that look like ours but have no effect, because someone who sets SESSION_SECRET, for example, expects it to work.
 *
 * @param environment such as process.env; a variable set to an empty string counts as unset
 */
export function findUnknownVariables(environment: Readonly<Record<string, string | undefined>>): UnknownVariable[] {
  return Object.entries(environment).flatMap(([name, value]) => {
    if (value === undefined || value === '' || variableNames.includes(name)) return [];
    const suggestion = findClosest(name.toUpperCase());
    return suggestion === undefined ? [] : [{ name, suggestion }];
  });
}

export function formatUnknownVariable({ name, suggestion }: UnknownVariable): string {
  return `The variable ${name} isn't used. Did you mean ${suggestion}?`;
}

function findClosest(name: string): string | undefined {
  const candidates = variableNames.filter(({ length }) => length >= minLength);
  const [near] = candidates
    // The distance is at least the difference in length. Skip the names that this rules out, because computing the distance for all of them
    // would slow down each start.
    .filter(({ length }) => Math.abs(length - name.length) <= length / 5)
    .map((known) => ({ known, distance: editDistance(name, known) }))
    .filter(({ known, distance }) => distance <= known.length / 5)
    .toSorted((a, b) => a.distance - b.distance);
  // Suggest a name that this one lengthens or shortens, as TRUSTED_PROXIES_FILE and TLS_CERT do.
  const longer = candidates.find((known) => name.startsWith(`${known}_`) || (name.includes('_') && known.startsWith(`${name}_`)));
  return near?.known ?? longer;
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
