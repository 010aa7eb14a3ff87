import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { CliHome } from '../support/cli.ts';
import { freshDirectory } from '../support/databases.ts';

const packScript = fileURLToPath(new URL('../../scripts/pack-cli.ts', import.meta.url));

describe('the published package', () => {
  let folder: string;
  before(function () {
    this.timeout(60_000);
    const out = freshDirectory();
    execFileSync(process.execPath, [packScript, out], { stdio: 'ignore' });
    folder = join(out, 'callkey');
  });

  it('has one dependency, and neither the core nor Electron', () => {
    const { dependencies, bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    expect(Object.keys(dependencies)).to.deep.equal(['@napi-rs/keyring']);
    expect(bin).to.deep.equal({ callkey: 'lib/main.js' });
    const text = readdirSync(join(folder, 'lib'))
      .map((name) => readFileSync(join(folder, 'lib', name), 'utf8'))
      .join();
    for (const absent of ['from"koa"', 'from"knex"', 'INSERT INTO calls', 'from"electron"']) expect(text).not.to.contain(absent);
  });

  it('runs where it is, with what is not installed left alone', async () => {
    const main = join(folder, 'lib', 'main.js');
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    expect(await new CliHome().start(['--version'], { main }).ended).to.include({ code: 0, stdout: `${version}\n` });
    const file = join(freshDirectory(), 'none.csv');
    expect((await new CliHome().start(['call', 'place', 'x', '--from', file], { main }).ended).code).to.equal(2);
    const { code, stderr } = await new CliHome().start(['call', 'place', 'x', '--phone', '12'], { main }).ended;
    expect(code).to.equal(2);
    expect(stderr).to.contain('E.164');
  });

  it('carries its README and the licences of what is bundled', () => {
    expect(readFileSync(join(folder, 'README.md'), 'utf8')).to.contain('callkey key set');
    const licences = readFileSync(join(folder, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    for (const name of ['commander', 'csv-parse', 'libphonenumber-js', 'luxon', 'undici', 'zod'])
      expect(licences).to.contain(`${name}\n\n`);
  });
});
