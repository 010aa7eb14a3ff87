import { expect } from 'chai';
import { cases } from '../chaos/cases/index.ts';
import { begin, listAttacks, listFaults } from '../chaos/run.ts';
import { databaseKinds } from '../support/databases.ts';
import { skip } from '../support/skip.ts';

// The short version of `npm run chaos`. Most of it is waiting, so `npm test` runs parts of it at the same time, such as "1/2".
const [part = 1, parts = 1] = (process.env['CHAOS_PART'] ?? '1/1').split('/').map(Number);

describe('no acknowledged call is lost, and no one is called twice or kept waiting, with', () => {
  const attacks = listAttacks(cases, databaseKinds, true).filter((_, index) => index % parts === part - 1);
  const { startRow, ended } = begin(attacks, true);
  // With --grep, more attacks have started than were requested.
  after(async function () {
    this.timeout(180_000);
    await ended();
  });

  for (const attack of attacks) {
    it(`${attack.one.title}, on ${attack.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, async function () {
      this.timeout(180_000);
      this.slow(60_000);
      const row = await startRow(attack);
      if (row.counts === null) return skip(this, row.notes.join());
      expect(listFaults(row), row.notes.join('; ')).to.deep.equal([]);
    });
  }
});
