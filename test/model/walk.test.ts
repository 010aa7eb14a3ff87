import { randomInt } from 'node:crypto';
import { onEachDatabase } from '../support/databases.ts';
import { walk } from './walk.ts';

const seed = randomInt(2 ** 31);

describe(`a walk through two cores, from seed ${seed}`, () => {
  onEachDatabase((kind) => {
    it('agrees with the model after every command', async function () {
      this.timeout(1_200_000);
      const commands = process.env['QUICK_TESTS'] === '1' ? 100 : 200;
      for (let next = seed, left = commands; left > 0; next++) left -= await walk({ kind, seed: next, longest: 2 * commands });
    });
  });
});
