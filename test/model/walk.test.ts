import { randomInt } from 'node:crypto';
import { onEachDatabase } from '../support/databases.ts';
import { walk } from './walk.ts';

describe('a random walk through two cores', () => {
  onEachDatabase((kind) => {
    const seed = randomInt(2 ** 31);
    it(`agrees with the model after every command (seed ${seed})`, async function () {
      this.timeout(600_000);
      await walk({ kind, seed, commands: 1_000, longest: 500 });
    });
  });
});
