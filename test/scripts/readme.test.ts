import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { bareEnvironment } from '../support/commands.ts';
import { spawnCore } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import { findProgram, skip } from '../support/skip.ts';

const cwd = fileURLToPath(new URL('../..', import.meta.url));
const blocks = [...readFileSync(join(cwd, 'README.md'), 'utf8').matchAll(/^```sh\n(.*?)^```/gms)].map(([, text = '']) => text);

describe('the commands in README.md', () => {
  it('load sample data, create a key, and place and cancel calls', async function () {
    this.timeout(120_000);
    if (findProgram('curl') === undefined) skip(this, "curl isn't installed");
    const home = freshDirectory();
    const database = `sqlite:${join(home, 'callkey.db')}`;
    const env = { ...bareEnvironment, HOME: home, TMPDIR: home, DATABASE_URL: database, XDG_RUNTIME_DIR: home };
    const [start = ''] = blocks.filter((block) => block.includes('npm start'));
    const [demo = ''] = /npm run .*(?= && npm start)/.exec(start) ?? [];
    const loaded = execFileSync('bash', ['--norc', '-euc', demo], { cwd, env, encoding: 'utf8' });
    const [, PASSWORD = ''] = /Sign in with the password {2}(\S+) /.exec(loaded) ?? [];
    const core = await spawnCore(database);
    const script = blocks.slice(
      blocks.findIndex((block) => block.includes('PRIVATE=')),
      blocks.findIndex((block) => block.includes('npm test')),
    );
    const text = script
      .filter((block) => block !== 'npm run desktop\n')
      .join('\n')
      .replace('CORE=http://127.0.0.1:8080', `CORE=${core.url}`);
    const printed = execFileSync('bash', ['--norc', '-euo', 'pipefail', '-c', text], { cwd, env: { ...env, PASSWORD }, encoding: 'utf8' });
    await core.stop();
    const calls = [...printed.matchAll(/^\{"requestId":"order-4711".*"state":"(\w+)"/gm)].map(([, state]) => state);
    expect(calls, printed).to.deep.equal(['queued', 'cancelled']);
    expect(printed)
      .to.match(/^Placed a call to \+353861234567\.$/m)
      .and.match(/^Cancelled\.$/m);
  });
});
