import { onEachDatabase } from '../support/databases.ts';
import { walk } from './walk.ts';

describe('a random walk through two cores', () => {
  onEachDatabase((kind) => {
    it('agrees with the model after every command', async function () {
      this.timeout(600_000);
      await walk({ kind, seed: 31, commands: 200, longest: 200 });
    });
  });
});
