import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { recordAll } from '../sql/record.ts';
import { unreachedBy } from '../sql/unreached.ts';
import { databaseKinds } from '../support/databases.ts';

describe('core/storage/sql', () => {
  const recorded = new Map<string, string>();
  let unreached: string[];

  before(async () => {
    unreached = await unreachedBy(async () => {
      for (const kind of databaseKinds) for (const [file, text] of await recordAll(kind)) recorded.set(file, text);
    });
  });

  it('contains the final text of every statement (to update it, run npm run sql)', () => {
    for (const [file, text] of recorded) expect(readFileSync(file, 'utf8').split('\n'), file).to.deep.equal(text.split('\n'));
  });

  it('covers all code that creates statements', () => {
    expect(unreached, 'in test/sql/statements.ts, run what reaches these').to.deep.equal([]);
  });
});
