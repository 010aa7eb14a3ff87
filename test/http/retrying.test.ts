import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { bareEnvironment, type Ended } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { findProgram, skip } from '../support/suites.ts';
import { somePhone } from '../support/tenants.ts';

const folder = fileURLToPath(new URL('../../core/reference/examples/', import.meta.url));
const caches = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url));

type Example = {
  name: string;
  /** The program that must be installed. */
  needs: string;
  /** Compiles the file into a folder. */
  compile?(out: string): [string, ...string[]];
  command(out: string): [string, ...string[]];
};

/** Keeps Java from preparing for a program that runs for long, which takes more processor time than this one. */
const briefJava = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

const examples: Example[] = [
  { name: 'curl', needs: 'curl', command: () => ['sh', join(folder, 'place-call.sh')] },
  { name: 'JavaScript', needs: process.execPath, command: () => [process.execPath, join(folder, 'place-call.mjs')] },
  { name: 'Python', needs: 'python3', command: () => ['python3', join(folder, 'place_call.py')] },
  { name: 'PHP', needs: 'php', command: () => ['php', join(folder, 'place-call.php')] },
  { name: 'Ruby', needs: 'ruby', command: () => ['ruby', join(folder, 'place_call.rb')] },
  {
    name: 'Go',
    needs: 'go',
    compile: (out) => ['go', 'build', '-o', join(out, 'place_call'), join(folder, 'place_call.go')],
    command: (out) => [join(out, 'place_call')],
  },
  {
    name: 'Java',
    needs: 'javac',
    compile: (out) => ['javac', ...briefJava.map((option) => `-J${option}`), '-d', out, join(folder, 'PlaceCall.java')],
    command: (out) => ['java', ...briefJava, '-cp', out, 'PlaceCall'],
  },
  {
    name: 'C#',
    needs: 'mcs',
    compile: (out) => ['mcs', '-r:System.Net.Http.dll', `-out:${join(out, 'place-call.exe')}`, join(folder, 'PlaceCall.cs')],
    command: (out) => ['mono', join(out, 'place-call.exe')],
  },
];

describe('the examples in core/reference', () => {
  const its = sharedIntegrator();

  for (const { name, needs, compile, command } of examples) {
    describe(`in ${name}`, () => {
      const out = freshDirectory();
      const label = name.replace('#', 's');
      before(function () {
        // A compiler may take a while on a busy machine.
        this.timeout(120_000);
        if (findProgram(needs) === undefined) skip(this, `no ${needs}`);
        const [program, ...args] = compile?.(out) ?? ['true'];
        // Go compiles its own packages for the first program, which takes most of a minute.
        const env = { ...process.env, GOCACHE: join(caches, 'callkey-go') };
        const { status, stderr } = spawnSync(program, args, { env, encoding: 'utf8' });
        expect(status, stderr).to.equal(0);
      });

      const run = async (order: string, phone: string): Promise<Ended> => {
        const env = { ...bareEnvironment, CALLKEY_SERVER: its.network.url, CALLKEY_API_KEY: its.key };
        const [program, ...args] = command(out);
        const child = spawn(program, [...args, its.tenants.campaign.id, order, phone], { env, stdio: ['ignore', 'pipe', 'pipe'] });
        const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
        return { code, stdout, stderr };
      };
      const findCalls = (requestId: string) => its.direct.storage.database.read('calls').where({ request_id: requestId });

      it("place one call if the first response is lost and the second is a 503, and don't place another when run again", async () => {
        const order = `lost-${label}`;
        const phone = somePhone();
        its.network.faults.push('lose the response', { status: 503, headers: { 'Retry-After': '1' } });
        const first = await run(order, phone);
        expect(first.code, first.stderr).to.equal(0);
        expect(JSON.parse(first.stdout)).to.include({ requestId: `order-${order}`, state: 'queued' });
        expect(its.network.seen).to.have.length(3);
        expect(JSON.parse((await run(order, phone)).stdout)).to.deep.equal(JSON.parse(first.stdout));
        expect(await findCalls(`order-${order}`)).to.have.length(1);
      });

      it('fail with a message instead of waiting for hours', async () => {
        its.network.faults.push({ status: 429, headers: { 'Retry-After': '30000' } });
        const { code, stderr } = await run(`long-${label}`, somePhone());
        expect(code, stderr).not.to.equal(0);
        if (name !== 'curl') expect(stderr).to.contain('30000 s');
        expect(its.network.seen).to.have.length(1);
      });

      it('accept a refusal as final, say why, and fail', async () => {
        const { code, stdout, stderr } = await run(`refused-${label}`, '12');
        expect(code).not.to.equal(0);
        expect(stdout + stderr)
          .to.contain('E.164')
          .and.not.match(/Traceback|Stack trace/);
        expect(its.network.seen).to.have.length(1);
      });

      it("don't follow redirects", async () => {
        its.network.faults.push({ status: 302, headers: { Location: `${its.network.url}/elsewhere` } });
        expect((await run(`redirect-${label}`, somePhone())).code).not.to.equal(0);
        expect(its.network.seen).to.have.length(1);
      });
    });
  }
});
