import { onEachDatabase } from '../support/databases.ts';
import { walk } from './walk.ts';

describe('a walk through two cores', () => {
  onEachDatabase((kind) => {
    it('agrees with the model after every command', async function () {
      this.timeout(1_200_000);
      // Always the same walks, because a rare difference that no one has explained yet mustn't fail someone else's change. `npm run walk`
      // chooses a new seed each time.
      for (let seed = 93_001, left = 800; left > 0; seed++) left -= await walk({ kind, seed, longest: 1_000 });
    });
  });
});
