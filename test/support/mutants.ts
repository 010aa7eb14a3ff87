// For npm run mutants: Stryker's processes load this before the tests instead of hooks.ts.
import fc from 'fast-check';
import Mocha from 'mocha';
import { cleanUp } from './clean-up.ts';

/** The mutants that each test executes, by the test's title. Stryker provides this in its processes. */
type Coverage = Record<string, Record<string, number>>;
type StrykerState = { currentTestId?: string; mutantCoverage?: { perTest: Coverage } };
const getState = (): StrykerState => Reflect.get(globalThis, '__stryker__') ?? {};

// Uses the same cases for each mutant. The first failing case is enough: shrinking it would take too long.
fc.configureGlobal({ seed: 2026, endOnFailure: true });

// All tests of a group depend on the code in its `before` hooks. Without this, Stryker would count that code for the test that ran
// previously.
const groups = new Map<string, Mocha.Suite>();
const { beforeAll } = Mocha.Suite.prototype;
Reflect.set(Mocha.Suite.prototype, 'beforeAll', function (this: Mocha.Suite, ...hook: unknown[]) {
  const id = `before ${this.fullTitle()}`;
  groups.set(id, this);
  const note = () => {
    Object.assign(getState(), { currentTestId: id });
  };
  Reflect.apply(beforeAll, this, ['Stryker', note]);
  return Reflect.apply(beforeAll, this, hook);
});

export const mochaHooks = {
  async afterAll(): Promise<void> {
    const perTest = getState().mutantCoverage?.perTest ?? {};
    for (const [id, group] of groups) {
      const before = perTest[id] ?? {};
      delete perTest[id];
      group.eachTest((test) => {
        const covered = perTest[test.fullTitle()] ?? {};
        perTest[test.fullTitle()] = covered;
        for (const [mutant, count] of Object.entries(before)) covered[mutant] = (covered[mutant] ?? 0) + count;
      });
    }
    // The next mutant must not find anything that this mutant left behind, such as a database.
    await cleanUp();
  },
};
