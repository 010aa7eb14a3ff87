import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { newestNode } from '#contract/node-release.ts';
import { bareEnvironment, buildWebConsole } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';
import { ask } from '../support/http.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { version, dependencies }: { version: string; dependencies: Record<string, string> } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
);
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

describe("the core's package", () => {
  let folder: string;
  let state: string;
  before(async function () {
    this.timeout(120_000);
    await buildWebConsole();
    const out = freshDirectory();
    // A different user runs the core, and must be able to read the package.
    chmodSync(out, 0o755);
    execFileSync(process.execPath, [join(root, 'scripts', 'pack-core.ts'), out], { stdio: 'ignore' });
    execFileSync('tar', ['--extract', '--file', join(out, `callkey-core-${version}.tgz`), '--directory', out]);
    folder = join(out, 'package');
    state = freshDirectory();
    // What npm would install: only the dependencies, from this checkout.
    mkdirSync(join(folder, 'node_modules'));
    for (const name of Object.keys(packageJson().dependencies))
      symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
    // The user could write to the package, too.
    if (nobody.uid !== undefined) execFileSync('chown', ['-Rh', `${nobody.uid}:${nobody.gid}`, state, folder]);
  });

  const packageJson = () => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const commandPath = (name: string) => join(folder, packageJson().bin[name]);
  const environment = () => ({
    ...bareEnvironment,
    NODE_COMPILE_CACHE: '',
    DATABASE_URL: `sqlite:${join(state, 'callkey.db')}`,
    PORT: '0',
    MANAGEMENT_PORT: '0',
  });
  const run = (name: string, ...args: string[]) =>
    spawnSync(process.execPath, [commandPath(name), ...args], { ...nobody, cwd: state, env: environment(), encoding: 'utf8' });

  it('depends only on native and database packages, in the tested versions', () => {
    const { dependencies: packed, engines } = packageJson();
    const names = ['argon2', 'knex', 'pg', 'sqlite3'];
    expect(packed).to.deep.equal(Object.fromEntries(names.map((name) => [name, dependencies[name]])));
    expect(engines).to.deep.equal({ node: `>=${newestNode}` });
  });

  it('includes every statement of the storage', () => {
    const statements = globSync('core/storage/**/*.sql', { cwd: root }).map((path) => basename(path));
    expect(statements).to.include('place.sqlite.sql');
    expect(readdirSync(join(folder, 'lib'))).to.include.members(statements);
    expect(new Set(statements).size).to.equal(statements.length);
  });

  it('prints its version, and accepts no other argument', () => {
    for (const name of ['callkey-core', 'callkey-admin'])
      expect(run(name, '--version')).to.include({ status: 0, stdout: `${version}\n`, stderr: '' });
    const { status, stderr } = run('callkey-core', '--port', '8080');
    expect(status).to.equal(2);
    expect(stderr).to.contain('environment variables');
  });

  it('on an older Node.js version, says in one sentence which version it needs', () => {
    const older = `data:text/javascript,${encodeURIComponent("Object.defineProperty(process, 'versions', { value: { node: '20.20.2' } })")}`;
    for (const name of ['callkey-core', 'callkey-admin']) {
      const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', older, commandPath(name)], { encoding: 'utf8' });
      expect([status, stdout]).to.deep.equal([1, '']);
      expect(stderr).to.match(/^\S+ needs Node\.js 24 or later, and this is v[\d.]+\.\n$/);
    }
  });

  it('runs as a single process, writes only to the state folder, and stops when told to', async () => {
    const before = readdirSync(folder, { recursive: true });
    const core = spawn(process.execPath, [commandPath('callkey-core')], { ...nobody, cwd: state, env: environment() });
    const ended = once(core, 'close');
    let stderr = '';
    core.stderr.on('data', (chunk) => {
      stderr += String(chunk);
    });
    const urls = new Map<string, string>();
    for await (const line of createInterface({ input: core.stdout })) {
      const { msg, url } = JSON.parse(line);
      urls.set(msg, url);
      if (msg === 'listening') break;
    }
    core.stdout.resume();
    const page = await ask('GET', `${urls.get('listening')}/`);
    const forIntegrators = await Promise.all(
      ['', '/callkey-cli.tgz'].map((path) => ask('GET', `${urls.get('listening')}/reference${path}`)),
    );
    const health = await ask('GET', `${urls.get('management listening')}/healthz`);
    const openapi = await ask('GET', `${urls.get('management listening')}/openapi.json`);
    core.kill('SIGTERM');
    expect(await ended).to.deep.equal([0, null]);
    expect([page.status, page.text.includes('<script'), openapi.status]).to.deep.equal([200, true, 200]);
    expect(forIntegrators.map(({ status }) => status)).to.deep.equal([200, 200]);
    expect(health.json).to.deep.equal({ status: 'alive', version });
    expect(stderr).to.match(/Lost it\? Run DATABASE_URL=sqlite:\S+ callkey-admin user password admin@localhost/);
    expect(readdirSync(folder, { recursive: true })).to.deep.equal(before);
    // The admin command works on the core's database.
    expect(run('callkey-admin', 'user', 'list').stdout).to.contain('admin@localhost');
    expect(run('callkey-admin', '--help').stdout).to.contain('Usage: callkey-admin');
  });

  it('contains the pages, whose links lead to files of the package or to the repository', () => {
    const pages = ['README.md', ...globSync('docs/**/*.md', { cwd: folder })];
    expect(pages).to.include('docs/operations/install.md');
    const links = pages.flatMap((page) =>
      [...readFileSync(join(folder, page), 'utf8').matchAll(/\]\((?!\w+:)([^)#\s]+)/g)].map(([, path = '']) => join(page, '..', path)),
    );
    expect(links.length).to.be.above(100);
    expect(links.filter((path) => !existsSync(join(folder, path)))).to.deep.equal([]);
  });

  it('contains everything that an installation needs', () => {
    for (const file of ['README.md', 'LICENSE', 'CHANGELOG.md', 'THIRD-PARTY-LICENSES.txt', 'deploy/callkey.service'])
      expect(existsSync(join(folder, file)), file).to.equal(true);
    // The second one is the license of data in one of our own folders.
    expect(readFileSync(join(folder, 'THIRD-PARTY-LICENSES.txt'), 'utf8'))
      .to.contain('koa\n\n')
      .and.contain('\nlibphonenumber\n\n');
  });
});
