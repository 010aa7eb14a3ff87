import { expect } from 'chai';
import { cases } from '../../scripts/chaos/cases/index.ts';
import { databasesOf, faultsOf, runCase } from '../../scripts/chaos/run.ts';
import { databaseKinds } from '../support/databases.ts';
import { skip } from '../support/skip.ts';

// The short version of `npm run chaos`. Most of it waits: `npm test` runs parts of it at once, such as "1/4".
const [part = 1, parts = 1] = (process.env['CHAOS_PART'] ?? '1/1').split('/').map(Number);
const runs = databaseKinds.flatMap((kind) => cases.filter((one) => databasesOf(one).includes(kind)).map((one) => ({ one, kind })));

describe('nothing acknowledged is lost, nobody is called twice or kept waiting, with', () => {
  for (const { one, kind } of runs.filter((_, index) => index % parts === part - 1)) {
    it(`${one.title}, on ${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, async function () {
      this.timeout(120_000);
      this.slow(60_000);
      const row = await runCase(one, kind, { isQuick: true });
      if ('skipped' in row) return skip(this, row.skipped);
      expect(faultsOf(row), row.notes.join('; ')).to.deep.equal([]);
    });
  }
});
