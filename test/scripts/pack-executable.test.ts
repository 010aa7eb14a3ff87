import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { bareEnvironment } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';

describe('the executable', () => {
  it('starts without Node.js, reports what it needs to place a call, and comes with licenses', function () {
    this.timeout(120_000);
    const pack = fileURLToPath(new URL('../../scripts/pack-executable.ts', import.meta.url));
    const file = execFileSync(process.execPath, [pack], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    const env = { ...bareEnvironment, HOME: freshDirectory(), PATH: '' };
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(execFileSync(file, ['--version'], { env, encoding: 'utf8' })).to.equal(`${version}\n`);
    const place = () => execFileSync(file, ['call', 'place', 'some-campaign', '--phone', '+493012345678'], { env, stdio: 'pipe' });
    expect(place).to.throw(/CALLKEY_SERVER/);
    const licenses = readFileSync(`${file}-THIRD-PARTY-LICENSES.txt`, 'utf8');
    expect(licenses)
      .to.match(/^undici\n\n/m)
      .and.match(/^@napi-rs\/keyring\n\n/m)
      .and.match(/^Node\.js v24/m);
  });
});
