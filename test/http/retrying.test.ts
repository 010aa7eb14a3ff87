import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { bareEnvironment, type Ended } from '../support/commands.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { freshDatabase, freshDirectory } from '../support/databases.ts';
import { type FaultyProxy, faultyProxy } from '../support/faulty-proxy.ts';
import { skip } from '../support/skip.ts';
import { createKey, createTenants, type DirectAccess, openDirect, signIn, somePhone, type Tenants } from '../support/tenants.ts';

const page = readFileSync(new URL('../../core/docs/retrying.md', import.meta.url), 'utf8');

/** How the page's examples are run. */
const examples = [
  { language: 'sh', name: 'curl', command: 'sh', needs: 'curl' },
  { language: 'python', name: 'Python', command: 'python3', needs: 'python3' },
  { language: 'php', name: 'PHP', command: 'php', needs: 'php' },
];

describe('the examples of core/docs/retrying.md', () => {
  let core: RunningCore;
  let direct: DirectAccess;
  let tenants: Tenants;
  let network: FaultyProxy;
  let key: string;

  before(async () => {
    const database = await freshDatabase('sqlite');
    core = await startCoreHere(database, { environment: { DIALER: 'off' } });
    direct = await openDirect(database);
    tenants = await createTenants(direct.ports);
    key = (await createKey(core.url, await signIn(core.url, 'ada@example.com'))).keyValue;
    network = await faultyProxy(core.url);
  });
  beforeEach(() => {
    network.seen.length = 0;
    network.faults.length = 0;
  });
  after(async () => {
    await network.close();
    await direct.close();
    await core.close();
  });

  for (const { language, name, command, needs } of examples) {
    describe(`in ${name}`, () => {
      let file: string;
      before(function () {
        if (spawnSync(needs, ['--version']).error) skip(this, `no ${needs}`);
        const [, example] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(page) ?? [];
        file = join(freshDirectory(), `example.${language}`);
        writeFileSync(file, example ?? '');
      });

      const run = async (order: string, phone: string): Promise<Ended> => {
        const env = { ...bareEnvironment, CALLKEY_SERVER: network.url, CALLKEY_API_KEY: key };
        const child = spawn(command, [file, tenants.campaign.id, order, phone], { env, stdio: ['ignore', 'pipe', 'pipe'] });
        const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
        return { code, stdout, stderr };
      };
      const callsOf = (requestId: string) => direct.storage.database.read('calls').where({ request_id: requestId });

      it('places one call where the first answer is lost, and none when it runs again', async () => {
        const order = `lost-${language}`;
        const phone = somePhone();
        network.faults.push('lose the answer');
        const first = await run(order, phone);
        expect(first.code, first.stderr).to.equal(0);
        expect(JSON.parse(first.stdout)).to.include({ requestId: `order-${order}`, state: 'queued' });
        expect(network.seen).to.have.length(2);
        expect(JSON.parse((await run(order, phone)).stdout)).to.deep.equal(JSON.parse(first.stdout));
        expect(await callsOf(`order-${order}`)).to.have.length(1);
      });

      it('sends again after a 503', async () => {
        network.faults.push({ status: 503, headers: { 'Retry-After': '1' } });
        const { code, stderr } = await run(`503-${language}`, somePhone());
        expect(code, stderr).to.equal(0);
        expect(network.seen).to.have.length(2);
      });

      it('takes a refusal for final, says why, and fails', async () => {
        const { code, stdout, stderr } = await run(`refused-${language}`, '12');
        expect(code).not.to.equal(0);
        expect(stdout + stderr).to.contain('E.164');
        expect(network.seen).to.have.length(1);
      });

      it('follows no redirect', async () => {
        network.faults.push({ status: 302, headers: { Location: `${network.url}/elsewhere` } });
        expect((await run(`redirect-${language}`, somePhone())).code).not.to.equal(0);
        expect(network.seen).to.have.length(1);
      });
    });
  }
});
