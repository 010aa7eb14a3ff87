import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { spawnScript } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';

describe('core/storage/sql', () => {
  const textsIn = (folder: string) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.sql'))
      .sort()
      .map((name) => ({ name, lines: readFileSync(join(folder, name), 'utf8').split('\n') }));

  it('contains the final text of every statement (to update it, run npm run sql)', async () => {
    const folder = freshDirectory();
    const { TEST_POSTGRES_URL, TEST_TEMPLATES, TMPDIR } = process.env;
    const given = { TEST_POSTGRES_URL, TEST_TEMPLATES, TMPDIR };
    const env = Object.fromEntries(Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
    const { stderr } = await spawnScript('test/sql/main.ts', [folder], { env });
    expect(stderr).to.equal('');
    expect(textsIn(folder)).to.deep.equal(textsIn('core/storage/sql'));
  });
});
