import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { onEachDatabase } from '../support/databases.ts';
import { Model } from './model.ts';
import { walk } from './walk.ts';

const seed = randomInt(2 ** 31);

describe(`a walk through two cores, from seed ${seed}`, () => {
  onEachDatabase((kind) => {
    it('agrees with the model after every command', async function () {
      this.timeout(1_200_000);
      await walk({ kind, seed, commands: process.env['QUICK_TESTS'] === '1' ? 100 : 200 });
    });
  });
});

describe('a failed walk', () => {
  const { place } = Model.prototype;
  afterEach(() => Object.assign(Model.prototype, { place }));

  it('prints the few commands that fail, and fails in the same way if only these are repeated', async () => {
    Object.assign(Model.prototype, { place: () => ({ status: 200 }) });
    const fail = async (only?: number[]) => {
      const report = await walk({ kind: 'sqlite', seed: 10, commands: 5, only }).catch(String);
      return String(report).replace(/\n {4}at .*|of \d commands/g, '');
    };
    const printed = await fail();
    const only = /--only=(.*)/.exec(printed)?.[1]?.split(',').map(Number);
    expect(only).to.have.length(2);
    expect(await fail(only)).to.equal(printed);
  });
});
