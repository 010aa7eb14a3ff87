import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { bareEnvironment, runScript } from '../support/commands.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import { skip } from '../support/suites.ts';
import { openDirect } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const page = readFileSync(new URL('../../core/docs/rehearsing.md', import.meta.url), 'utf8');
const blocks = (section: string) => [...section.matchAll(/```sh( lock)?\n(.*?)```/gs)].map(([, lock, block = '']) => ({ lock, block }));
const [introduction = '', ...sections] = page.split('\n### ');
const [{ block: functions } = { block: '' }] = blocks(introduction);

describe('core/docs/rehearsing.md', () => {
  const directory = freshDirectory();
  let core: RunningCore;
  let environment: Record<string, string>;
  let database: string;

  before(async function () {
    for (const needed of ['curl', 'python3']) if (spawnSync(needed, ['--version']).error) skip(this, `no ${needed}`);
    mkdirSync(join(directory, 'data'));
    database = `sqlite:${join(directory, 'data', 'rehearsal.db')}`;
    const { stdout } = await runScript('scripts/demo.ts', [], { env: { DATABASE_URL: database } });
    core = await startCoreHere(database, { environment: { DIALER: 'simulated' } });
    const exported = Object.fromEntries([...stdout.matchAll(/^export (\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]));
    environment = { ...bareEnvironment, ...exported, CALLKEY_SERVER: core.url };
  });
  after(() => core?.close());

  const start = (script: string): ChildProcess =>
    spawn('sh', ['-c', script], { env: environment, cwd: directory, stdio: ['pipe', 'pipe', 'inherit'] });
  const run = async (script: string) => {
    const child = start(`${functions}${script}`);
    return child.stdout ? text(child.stdout) : '';
  };
  const untilDialing = async (requestId: string) => {
    const direct = await openDirect(database);
    const calls = () => direct.storage.database.read('calls').where({ request_id: requestId, state: 'dialing' });
    await until(async () => (await calls()).length > 0);
    await direct.close();
  };

  for (const section of sections) {
    const [title = ''] = section.split('\n');
    it(`has an example that gets the response "${title}"`, async () => {
      const [lock] = blocks(section).filter((block) => block.lock !== undefined);
      const locking = lock && start(lock.block);
      if (locking?.stdout) await once(locking.stdout, 'data');
      const [script = ''] = blocks(section).flatMap(({ lock: isLock, block }) => (isLock ? [] : [block]));
      const [first = '', afterPause] = script.split('sleep 5\n');
      let answer = await run(first);
      if (afterPause !== undefined) {
        await untilDialing('rehearsal-2');
        answer = await run(afterPause);
      }
      locking?.stdin?.end('\n');
      if (locking) await once(locking, 'close');
      expect(answer).to.match(new RegExp(`^HTTP/1.1 ${title.slice(0, 3)} `));
      if (title.includes('too late')) expect(answer).to.contain('already-dialed');
      if (title.startsWith('429'))
        expect(answer)
          .to.match(/^retry-after: \d+/im)
          .and.contain('too-many-calls');
      if (title.startsWith('503')) {
        expect(answer).to.match(/^retry-after: \d/im);
        expect(await run(script)).to.match(/^HTTP\/1.1 202 /);
      }
    });
  }
});
