import { expect } from 'chai';
import { cases } from '../../scripts/chaos/cases/index.ts';
import { databasesOf, faultsOf, runCase } from '../../scripts/chaos/run.ts';
import { onEachDatabase } from '../support/databases.ts';

// The short version of `npm run chaos`.
describe('nothing acknowledged is lost, nobody is called twice or kept waiting, with', () => {
  onEachDatabase((kind) => {
    for (const one of cases.filter((each) => databasesOf(each).includes(kind))) {
      it(one.title, async function () {
        this.timeout(120_000);
        this.slow(60_000);
        const row = await runCase(one, kind, { isQuick: true });
        if ('skipped' in row) {
          process.stdout.write(`    not tried: ${row.skipped}\n`);
          return this.skip();
        }
        expect(faultsOf(row), row.notes.join('; ')).to.deep.equal([]);
      });
    }
  });
});
