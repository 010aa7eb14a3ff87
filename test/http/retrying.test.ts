import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { bareEnvironment, type Ended } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { skip } from '../support/skip.ts';
import { somePhone } from '../support/tenants.ts';

const page = readFileSync(new URL('../../core/docs/retrying.md', import.meta.url), 'utf8');

/** How to run the page's examples. */
const examples = [
  { language: 'sh', name: 'curl', command: 'sh', needs: 'curl' },
  { language: 'python', name: 'Python', command: 'python3', needs: 'python3' },
  { language: 'php', name: 'PHP', command: 'php', needs: 'php' },
];

describe('the examples of core/docs/retrying.md', () => {
  const its = sharedIntegrator();

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
        const env = { ...bareEnvironment, CALLKEY_SERVER: its.network.url, CALLKEY_API_KEY: its.key };
        const child = spawn(command, [file, its.tenants.campaign.id, order, phone], { env, stdio: ['ignore', 'pipe', 'pipe'] });
        const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
        return { code, stdout, stderr };
      };
      const callsOf = (requestId: string) => its.direct.storage.database.read('calls').where({ request_id: requestId });

      it("place one call if the first response is lost, and don't place another when run again", async () => {
        const order = `lost-${language}`;
        const phone = somePhone();
        its.network.faults.push('lose the answer');
        const first = await run(order, phone);
        expect(first.code, first.stderr).to.equal(0);
        expect(JSON.parse(first.stdout)).to.include({ requestId: `order-${order}`, state: 'queued' });
        expect(its.network.seen).to.have.length(2);
        expect(JSON.parse((await run(order, phone)).stdout)).to.deep.equal(JSON.parse(first.stdout));
        expect(await callsOf(`order-${order}`)).to.have.length(1);
      });

      it('retry after a 503', async () => {
        its.network.faults.push({ status: 503, headers: { 'Retry-After': '1' } });
        const { code, stderr } = await run(`503-${language}`, somePhone());
        expect(code, stderr).to.equal(0);
        expect(its.network.seen).to.have.length(2);
      });

      it('accept a refusal as final, say why, and fail', async () => {
        const { code, stdout, stderr } = await run(`refused-${language}`, '12');
        expect(code).not.to.equal(0);
        expect(stdout + stderr)
          .to.contain('E.164')
          .and.not.match(/Traceback|Stack trace/);
        expect(its.network.seen).to.have.length(1);
      });

      it("don't follow redirects", async () => {
        its.network.faults.push({ status: 302, headers: { Location: `${its.network.url}/elsewhere` } });
        expect((await run(`redirect-${language}`, somePhone())).code).not.to.equal(0);
        expect(its.network.seen).to.have.length(1);
      });
    });
  }
});
