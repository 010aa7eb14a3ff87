// For npm run mutants: what Stryker's processes load before the tests, in the place of hooks.ts.
import fc from 'fast-check';
import Mocha from 'mocha';
import { cleanUp } from './clean-up.ts';

/** Which mutants a test runs through, by the test's title. Stryker's own, in its processes. */
type Coverage = Record<string, Record<string, number>>;
type StrykerState = { currentTestId?: string; mutantCoverage?: { perTest: Coverage } };
const stateOf = (): StrykerState => Reflect.get(globalThis, '__stryker__') ?? {};

// The same cases for each mutant. The first one that fails says enough: looking for a smaller one takes long.
fc.configureGlobal({ seed: 2026, endOnFailure: true });

// What runs before the tests of a group is on the way of each of them. Stryker takes it for a part of the test before.
const groups = new Map<string, Mocha.Suite>();
const { beforeAll } = Mocha.Suite.prototype;
Reflect.set(Mocha.Suite.prototype, 'beforeAll', function (this: Mocha.Suite, ...hook: unknown[]) {
  const id = `before ${this.fullTitle()}`;
  groups.set(id, this);
  const note = () => {
    Object.assign(stateOf(), { currentTestId: id });
  };
  Reflect.apply(beforeAll, this, ['Stryker', note]);
  return Reflect.apply(beforeAll, this, hook);
});

export const mochaHooks = {
  async afterAll(): Promise<void> {
    const perTest = stateOf().mutantCoverage?.perTest ?? {};
    for (const [id, group] of groups) {
      const before = perTest[id] ?? {};
      delete perTest[id];
      group.eachTest((test) => {
        const covered = perTest[test.fullTitle()] ?? {};
        perTest[test.fullTitle()] = covered;
        for (const [mutant, count] of Object.entries(before)) covered[mutant] = (covered[mutant] ?? 0) + count;
      });
    }
    // The next mutant finds nothing of this one, such as a database that it has made.
    await cleanUp();
  },
};
