/** So many cases of a rule; a twentieth of them for each mutant (npm run mutants), which there are a thousand of. */
export function runs(count: number): { numRuns: number } {
  return { numRuns: '__stryker__' in globalThis ? count / 20 : count };
}
