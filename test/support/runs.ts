/**
 * Sets the number of random cases for a rule. Each mutant gets a twentieth of them (npm run mutants), since there are a thousand mutants.
 */
export function runs(count: number): { numRuns: number } {
  return { numRuns: '__stryker__' in globalThis ? count / 20 : count };
}
