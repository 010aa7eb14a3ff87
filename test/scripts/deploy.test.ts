import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { freshDirectory } from '../support/databases.ts';
import { skip } from '../support/skip.ts';

const deploy = fileURLToPath(new URL('../../core/deploy/', import.meta.url));
const analyze = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' });

describe('the systemd unit (needs systemd-analyze)', () => {
  before(function () {
    if (analyze('--version').error) skip(this, 'systemd is not installed');
  });

  it('is valid, with its drop-in for PostgreSQL', () => {
    const directory = freshDirectory();
    // The check looks for the program, too.
    const unit = readFileSync(join(deploy, 'callkey.service'), 'utf8').replace(/^ExecStart=callkey-core$/m, 'ExecStart=/bin/true');
    const dropIns = join(directory, 'callkey.service.d');
    mkdirSync(dropIns);
    writeFileSync(join(directory, 'callkey.service'), unit);
    writeFileSync(join(dropIns, 'postgresql.conf'), readFileSync(join(deploy, 'callkey-postgresql.conf')));
    const { status, stdout, stderr } = analyze('verify', '--man=no', '--recursive-errors=no', join(directory, 'callkey.service'));
    expect([status, stdout, stderr]).to.deep.equal([0, '', '']);
  });

  it('exposes the service by 2.0 of 10 at most', () => {
    const { status, stdout } = analyze('security', '--offline=true', '--threshold=20', join(deploy, 'callkey.service'));
    expect(status, stdout).to.equal(0);
  });
});
