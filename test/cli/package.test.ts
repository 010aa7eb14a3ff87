import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { CliHome } from '../support/cli.ts';
import { bareEnvironment, type Ended } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const readme = readFileSync(join(root, 'cli', 'README.md'), 'utf8');

/** Installed commands start the first Node.js on the PATH. */
const onThisNode = { ...bareEnvironment, PATH: `${dirname(process.execPath)}:${bareEnvironment.PATH}` };

/** Returns the captured group of the pattern's first match in the README. */
function readmeText(pattern: RegExp): string {
  const [, text] = pattern.exec(readme) ?? [];
  if (text === undefined) throw new Error(`cli/README.md doesn't contain ${pattern}.`);
  return text;
}

describe('the published package', () => {
  const its = sharedIntegrator();
  let out: string;
  let folder: string;
  let main: string;
  before(function () {
    this.timeout(60_000);
    out = freshDirectory();
    execFileSync(process.execPath, [join(root, 'scripts', 'pack-cli.ts'), out], { stdio: 'ignore' });
    folder = join(out, 'callkey');
    main = join(folder, 'lib', 'callkey.js');
  });

  const packageJson = () => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

  it('has one optional dependency, and includes neither the core nor Electron', () => {
    const { dependencies, optionalDependencies, bin } = packageJson();
    expect([dependencies, Object.keys(optionalDependencies)]).to.deep.equal([undefined, ['@napi-rs/keyring']]);
    expect(bin).to.deep.equal({ callkey: 'lib/callkey.js' });
    const text = readdirSync(join(folder, 'lib'))
      .map((name) => readFileSync(join(folder, 'lib', name), 'utf8'))
      .join();
    for (const absent of ['from"koa"', 'from"knex"', 'INSERT INTO calls', 'from"electron"']) expect(text).not.to.contain(absent);
  });

  it('runs without installing anything else', async () => {
    const { version } = packageJson();
    expect(await new CliHome().start(['--version'], { main }).ended).to.include({ code: 0, stdout: `${version}\n` });
    const file = join(freshDirectory(), 'none.csv');
    expect((await new CliHome().start(['call', 'place', 'x', '--from', file], { main }).ended).code).to.equal(2);
    const { code, stderr } = await new CliHome().start(['call', 'place', 'x', '--phone', '12'], { main }).ended;
    expect(code).to.equal(2);
    expect(stderr).to.contain('E.164');
  });

  it('loads only a small part of its code for help and for completion', () => {
    const countLoaded = `import { registerHooks } from 'node:module';
      let bytes = 0;
      registerHooks({
        load(url, context, next) {
          const loaded = next(url, context);
          bytes += loaded.source?.length ?? 0;
          return loaded;
        },
      });
      process.on('exit', () => process.stderr.write(String(bytes)));`;
    const args = ['--import', `data:text/javascript,${encodeURIComponent(countLoaded)}`, main, '--help'];
    const { stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    // zod or undici alone would exceed this.
    expect(Number(stderr)).to.be.within(50_000, 250_000);
  });

  it('says in one sentence that the Node.js version is too old', () => {
    const older = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.18.0' } })`;
    const as = (args: string[]) => execFileSync(process.execPath, [...args, main, '--version'], { encoding: 'utf8', stdio: 'pipe' });
    expect(() => as(['--import', `data:text/javascript,${older}`]))
      .to.throw()
      .that.includes({ status: 2, stderr: 'callkey needs Node.js 22.19 or later; this is 22.18.0.\n', stdout: '' });
  });

  it('includes its manual page, its README and the licenses of bundled packages', () => {
    expect(packageJson().man).to.deep.equal(['man/callkey.1']);
    expect(readFileSync(join(folder, 'man', 'callkey.1'), 'utf8')).to.match(/^\.TH CALLKEY 1/);
    expect(readFileSync(join(folder, 'README.md'), 'utf8')).to.contain('callkey key set');
    const licences = readFileSync(join(folder, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    for (const name of ['commander', 'libphonenumber-js', 'luxon', 'undici', 'zod']) expect(licences).to.contain(`${name}\n\n`);
  });

  it('can be installed with the command from its README, and places a call', async function () {
    this.timeout(60_000);
    const { version, name, repository, bugs } = packageJson();
    expect(name).to.match(/^@callkey\//);
    expect([repository.url, bugs.url].every((url) => url.includes('/callkey/callkey'))).to.equal(true);
    const command = readmeText(/^(npm install --global \.\/\S+)$/m).replace('VERSION', version);
    const prefix = freshDirectory();
    // Works without a network, because it omits the keychain library, which is needed only to store a key in the keychain.
    const env = { ...onThisNode, npm_config_prefix: prefix, npm_config_offline: 'true', npm_config_omit: 'optional' };
    execFileSync('sh', ['-c', command], { cwd: out, env, stdio: 'pipe' });
    const installed = join(prefix, 'bin', 'callkey');
    expect(execFileSync(installed, ['--version'], { encoding: 'utf8', env: onThisNode })).to.equal(`${version}\n`);
    const place = ['call', 'place', its.tenants.campaign.id, '--phone', somePhone(), '--request-id', 'installed'];
    await promisify(execFile)(installed, place, { env: { ...onThisNode, ...its.home.environment, HOME: its.home.directory } });
    expect(await its.direct.storage.database.read('calls').where({ request_id: 'installed' })).to.have.length(1);
  });

  describe('as a library', () => {
    let directory: string;

    before(() => {
      directory = freshDirectory();
      mkdirSync(join(directory, 'node_modules', '@callkey'), { recursive: true });
      symlinkSync(folder, join(directory, 'node_modules', '@callkey', 'cli'));
      writeFileSync(join(directory, 'package.json'), '{ "type": "module" }');
    });

    it('places one call per order, even if the order system is killed before it records the call', async () => {
      const program = join(directory, 'reminders.js');
      writeFileSync(program, readmeText(/```js\n(\/\/ reminders\.js\n.*?)```/s));
      const orders = new DatabaseSync(join(directory, 'orders.db'));
      orders.exec('CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, phone TEXT, contactId TEXT)');
      const insert = orders.prepare('INSERT INTO orders (customer, phone) VALUES (?, ?)');
      for (const customer of ['Ada', 'Grace', 'Mary']) insert.run(customer, somePhone());
      insert.run('Alan', 'no number');
      const start = () => {
        const env = { ...bareEnvironment, CALLKEY_SERVER: its.network.url, CALLKEY_API_KEY: its.key, CAMPAIGN: its.tenants.campaign.id };
        const child = spawn(process.execPath, [program], { cwd: directory, env, stdio: ['ignore', 'ignore', 'pipe'] });
        let stderr = '';
        child.stderr.on('data', (chunk) => {
          stderr += String(chunk);
        });
        return { child, ended: once(child, 'close').then(([code]): Ended => ({ code, stdout: '', stderr })) };
      };

      // The second call is placed, its response is lost, and the program is killed during the retry.
      const held = Promise.withResolvers<void>();
      its.network.faults.push('pass', 'lose the response', held.promise);
      const killed = start();
      await until(() => its.network.seen.length === 3);
      killed.child.kill('SIGKILL');
      await killed.ended;
      held.resolve();
      expect(orders.prepare('SELECT count(contactId) AS noted FROM orders').get()).to.include({ noted: 1 });

      const { code, stderr } = await start().ended;
      expect(code, stderr).to.equal(0);
      expect(stderr).to.contain('order 4: ').and.contain('E.164');
      const noted = orders.prepare('SELECT contactId FROM orders WHERE contactId IS NOT NULL').all();
      const calls = await its.direct.storage.database.read('calls').whereLike('request_id', 'order-%').pluck('contact_id');
      expect(calls.toSorted()).to.deep.equal(noted.map(({ contactId }) => contactId).toSorted());
      expect(calls).to.have.length(3);
      orders.close();
    });

    it('says in one sentence that the Node.js version is too old', () => {
      const program = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0' } });
        await import('@callkey/cli').catch((error) => console.log(error.message));`;
      writeFileSync(join(directory, 'older.js'), program);
      const output = execFileSync(process.execPath, [join(directory, 'older.js')], { encoding: 'utf8' });
      expect(output).to.equal('@callkey/cli needs Node.js 22.19 or later; this is 20.19.0.\n');
    });

    it('is found by older module resolution, which ignores exports', () => {
      const { main: entry, types, exports } = packageJson();
      expect([entry, types]).to.deep.equal([exports['.'].default, exports['.'].types]);
      for (const path of [entry, types]) expect(existsSync(join(folder, path)), path).to.equal(true);
    });

    it("has types that don't depend on any other package", function () {
      this.timeout(60_000);
      writeFileSync(
        join(directory, 'typed.ts'),
        `import { CallkeyClient, CallkeyError, type Call, type PlacedCall } from '@callkey/cli';
         const call: Call = { requestId: 'order-1', contact: { phone: '+493012345678' } };
         const client = new CallkeyClient({ server: 'https://calls.example.com', keyValue: '' });
         export const placed: Promise<PlacedCall> = client.place('campaign', call, { signal: AbortSignal.timeout(1000) });
         export const code = (error: unknown): string | undefined => (error instanceof CallkeyError ? error.code : undefined);
         // @ts-expect-error Without a request ID, a retry could place a second call.
         client.place('campaign', { contact: { phone: '+493012345678' } });`,
      );
      const options = {
        module: 'nodenext',
        target: 'es2024',
        strict: true,
        exactOptionalPropertyTypes: true,
        noEmit: true,
        skipLibCheck: false,
      };
      const compilerOptions = { ...options, types: [], lib: ['es2024', 'dom'] };
      writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['typed.ts'] }));
      execFileSync(join(root, 'node_modules', '.bin', 'tsc'), ['-p', directory], { encoding: 'utf8' });
    });
  });
});
