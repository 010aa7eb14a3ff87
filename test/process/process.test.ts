import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, existsSync, openSync, readdirSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { freePort } from '../../scripts/support/postgres.ts';
import { bareEnvironment, buildWebConsole, spawnScript } from '../support/commands.ts';
import { connected, failToStart, spawnCore, startCoreHere } from '../support/core.ts';
import { emptyDatabase, freshDatabase, freshDirectory, onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { listenHere } from '../support/listen.ts';
import { findProgram, skip } from '../support/suites.ts';
import { addTenants, createKey, databaseWithTenants, openDirect, password, placeCall, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const main = fileURLToPath(new URL('../../core/main.ts', import.meta.url));

describe('the core process', () => {
  it('keeps serving, and can be stopped, while its log is on a full disk (needs /dev/full)', async function () {
    if (!existsSync('/dev/full')) skip(this, '/dev/full is missing');
    const port = String(await freePort());
    const log = openSync('/dev/full', 'w');
    const env = { ...bareEnvironment, PORT: port, MANAGEMENT_PORT: 'off', LOG_LEVEL: 'debug', DATABASE_URL: await freshDatabase('sqlite') };
    const child = spawn(process.execPath, [main], { env, stdio: ['ignore', log, 'ignore'] });
    closeSync(log);
    const ended = once(child, 'exit');
    const answers: number[] = [];
    await until(async () => {
      const answer = await ask('GET', `http://127.0.0.1:${port}/console/session`).catch(() => null);
      if (answer) answers.push(answer.status);
      return answers.length === 20;
    });
    child.kill('SIGTERM');
    expect([new Set(answers), (await ended)[0]]).to.deep.equal([new Set([401]), 0]);
  });

  it('keeps running on SIGHUP, as under nohup, unless it runs in a terminal (needs script)', async function () {
    const core = await spawnCore(await freshDatabase('sqlite'));
    core.child.kill('SIGHUP');
    await until(() => core.stdout.some((line) => line.includes('SIGHUP ignored')));
    expect((await ask('GET', `${core.managementUrl}/healthz`)).status).to.equal(200);
    await core.stop();
    if (findProgram('script') === undefined) skip(this, "script isn't installed");
    const env = { ...bareEnvironment, PORT: '0', MANAGEMENT_PORT: 'off', DATABASE_URL: await freshDatabase('sqlite') };
    const command = `${process.execPath} ${main} & echo pid $!; wait $!; echo exit $?`;
    const terminal = spawn('script', ['--quiet', '--command', command, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    const closed = once(terminal, 'close');
    let shown = '';
    terminal.stdout.on('data', (chunk) => {
      shown += String(chunk);
    });
    await until(() => shown.includes('"listening"'));
    process.kill(Number(/pid (\d+)/.exec(shown)?.[1]), 'SIGHUP');
    await closed;
    expect(shown).to.match(/^exit 0\r?$/m);
  });

  it('keeps its management listener reachable, and warns, if it may open only 64 files (needs Linux)', async function () {
    if (process.platform !== 'linux') skip(this, 'ulimit');
    const env = { ...bareEnvironment, PORT: '0', MANAGEMENT_PORT: '0', DATABASE_URL: await freshDatabase('sqlite') };
    const child = spawn('sh', ['-c', 'ulimit -n 64; exec "$0" "$1"', process.execPath, main], { env, stdio: ['ignore', 'pipe', 'ignore'] });
    const ended = once(child, 'exit');
    const lines: { msg: string; url: string }[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)));
    const url = (msg: string) => lines.find((line) => line.msg === msg)?.url ?? '';
    await until(() => url('listening') !== '');
    const { hostname, port } = new URL(url('listening'));
    // Each has sent a part of a request, so none is idle.
    const clients = Array.from({ length: 100 }, () => {
      const socket = connect(Number(port), hostname).on('error', () => undefined);
      socket.write('GET / HTTP/1.1\r\n');
      return socket;
    });
    await Promise.all(clients.map((socket) => once(socket, 'connect')));
    for (let request = 0; request < 5; request++) {
      expect((await ask('GET', `${url('management listening')}/healthz`)).status).to.equal(200);
      expect((await ask('GET', `${url('management listening')}/readyz`)).status).to.equal(200);
    }
    for (const socket of clients) socket.destroy();
    child.kill('SIGTERM');
    await ended;
    expect(lines.filter(({ msg }) => msg.startsWith('this process may open so few files'))).to.have.length(1);
  });

  it('creates the first user once, even after a failed start, and shows the password on the terminal but not in the log', async () => {
    await buildWebConsole();
    const database = await emptyDatabase('sqlite');
    const taken = await listenHere(createServer());
    const refused = await failToStart({ DATABASE_URL: database, PORT: String(taken.port) });
    expect(refused.stderr).to.contain('EADDRINUSE');
    await taken.close();
    const first = await spawnCore(database);
    const shown = () => /one-time password\s+(\S+)/.exec(first.stderr.join('\n'))?.[1];
    await until(() => shown() !== undefined);
    const oneTimePassword = shown() ?? '';
    const signedIn = await ask('POST', `${first.url}/console/session`, { body: { email: 'admin@localhost', password: oneTimePassword } });
    await first.stop();
    expect(signedIn.status).to.equal(201);
    expect(signedIn.json).to.include({ passwordChangeDue: true });
    expect(first.stdout.join('\n')).not.to.contain(oneTimePassword);
    expect(first.stderr.join('\n')).to.contain(`Open ${first.url} in a browser, sign in with it, and choose a new password.`);
    expect(first.stdout.map((line) => JSON.parse(line).msg)).to.include(`To use the console, open ${first.url} in a browser`);
    const second = await startCoreHere(database);
    await second.close();
    expect(second.firstUser).to.equal(null);
  });

  onEachDatabase((kind) =>
    it('warns as long as it has no data but is next to another database, where the operator may have expected theirs', async () => {
      const database = await emptyDatabase(kind);
      const other = kind === 'sqlite' ? database.replace('callkey.db', 'callkye.db') : `${database}?options=-csearch_path%3Dother`;
      const start = async (url: string) => {
        const core = await startCoreHere(url);
        await core.close();
        return core.log.flatMap(({ neighbors = [] }) => neighbors);
      };
      expect(await start(database)).to.deep.equal([]);
      if (kind === 'postgres') {
        const client = await connected(database);
        await client.query('CREATE SCHEMA other');
        await client.end();
      }
      expect(await start(other)).to.deep.equal([kind === 'sqlite' ? database.slice('sqlite:'.length) : 'the schema public']);
      expect(await start(other)).to.deep.equal([]);
    }),
  );

  it('starts in a folder that its user may not list (needs another user than root)', async function () {
    if (process.getuid?.() === 0) skip(this, 'root may list every folder');
    const directory = freshDirectory();
    chmodSync(directory, 0o300);
    const core = await startCoreHere(`sqlite:${directory}/callkey.db`).finally(() => chmodSync(directory, 0o700));
    await core.close();
  });

  it('creates the default database in the data folder, with a session secret, both for its own user only, and keeps sessions across a restart', async () => {
    const directory = freshDirectory();
    const start = () => spawnCore('', { SESSION_SECRETS: '' }, directory);
    const first = await start();
    await addTenants(`sqlite:${join(directory, 'data', 'callkey.db')}`);
    const cookie = await signIn(first.url, 'ada@example.com');
    await first.stop();
    const second = await start();
    const answer = await ask('GET', `${second.url}/console/session`, { cookie });
    await second.stop();
    expect(answer.status).to.equal(200);
    for (const file of ['callkey.db', 'callkey.db.session-secret']) {
      expect(statSync(join(directory, 'data', file)).mode & 0o777).to.equal(0o600);
    }
  });

  it('creates one session secret if two processes start at the same time, and leaves no other file behind', async () => {
    const { database } = await databaseWithTenants('sqlite');
    const folder = dirname(database.replace('sqlite:', ''));
    const start = () => spawnCore(database, { SESSION_SECRETS: '' });
    const [first, second] = await Promise.all([start(), start()]);
    const cookie = await signIn(first.url, 'ada@example.com');
    const answer = await ask('GET', `${second.url}/console/session`, { cookie });
    await Promise.all([first.stop(), second.stop()]);
    expect(answer.status).to.equal(200);
    expect(readdirSync(folder).filter((name) => name.includes('session-secret'))).to.have.length(1);
  });

  onEachDatabase((kind) => {
    it('never writes a secret anywhere, whatever the log level', async () => {
      const { database, tenants } = await databaseWithTenants(kind);
      const core = await spawnCore(database, { LOG_LEVEL: 'trace' });
      const direct = await openDirect(database);
      const cookie = await signIn(core.url, 'ada@example.com');
      const { id, keyValue } = await createKey(core.url, cookie, 'Canary');
      await placeCall(core.url, tenants.campaign.id, keyValue);
      await placeCall(core.url, tenants.campaign.id, keyValue, { contact: { phone: somePhone(), [keyValue]: keyValue } });
      await placeCall(core.url, keyValue, keyValue);
      await ask('GET', `${core.url}/${keyValue}?key=${keyValue}`, {
        key: keyValue,
        headers: { 'User-Agent': keyValue, Referer: keyValue },
      });
      await ask('GET', `${core.url}/console/api-keys/${keyValue}/revocation`, { cookie });
      await ask('POST', `${core.url}/console/session`, { body: { email: keyValue, password: keyValue } });
      await ask('POST', `${core.url}/console/password`, {
        cookie,
        body: { currentPassword: password, newPassword: 'another canary password' },
      });
      await ask('DELETE', `${core.url}/console/api-keys/${id}`, { cookie });
      const { text: metrics } = await ask('GET', `${core.managementUrl}/metrics`);
      await core.stop();
      const tables = await Promise.all(
        ['users', 'api_keys', 'revoked_api_keys', 'sessions', 'audit_events', 'calls', 'sign_in_attempts'].map((table) =>
          direct.storage.database.read(table),
        ),
      );
      await direct.close();
      const sessionId = /callkey_session_\w{8}=([\w-]+)/.exec(cookie)?.[1] ?? '';
      const everything = [...core.stdout, ...core.stderr, metrics, JSON.stringify(tables)].join('\n');
      expect(core.stdout.filter((line) => line.includes('"msg":"request"'))).to.have.length.above(8);
      for (const secret of [keyValue.slice(12, 40), sessionId, password, 'another canary password'])
        expect(everything).not.to.contain(secret);
    });
  });

  it("announces that it's listening even with LOG_LEVEL=fatal, and doesn't wait for a client that stopped partway through its request", async () => {
    const core = await spawnCore(await freshDatabase('sqlite'), { LOG_LEVEL: 'fatal' });
    expect(core.startLine).to.deep.include({ level: 'info', url: core.url });
    const { port, hostname } = new URL(core.url);
    const idle = connect(Number(port), hostname).on('error', () => undefined);
    await new Promise((resolve) => idle.write('GET / HTTP/1.1\r\nHost: x\r\n', resolve));
    const code = await core.stop('SIGINT');
    idle.destroy();
    expect(code).to.equal(0);
    expect(core.stdout.map((line): unknown => JSON.parse(line)['msg'])).to.deep.equal(['management listening', 'listening']);
  });

  it('answers --health with the exit code, at the address that its own variables set', async () => {
    // fetch refuses this port, and uses the proxy.
    const port = '10080';
    const host = `127.1.${(process.pid >> 8) & 255}.${process.pid & 255}`;
    const variables = { MANAGEMENT_HOST: host, MANAGEMENT_PORT: port, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:9' };
    const core = await spawnCore(await freshDatabase('sqlite'), variables);
    const health = (env: Record<string, string>) => spawnScript('core/main.ts', ['--health'], { env });
    const running = await health({ ...variables, MANAGEMENT_PORT: `${port}\r` });
    await core.stop();
    const [stopped, picked] = [await health(variables), await health({ MANAGEMENT_PORT: '0' })];
    expect([running, stopped, picked].map(({ code }) => code)).to.deep.equal([0, 1, 1]);
    expect(picked.stderr).to.equal("MANAGEMENT_PORT is 0, so the core's port isn't known.\n");
  });

  it("doesn't open the management listener if it's turned off", async () => {
    const core = await startCoreHere(await freshDatabase('sqlite'), { environment: { MANAGEMENT_PORT: 'off' } });
    await core.close();
    expect(core.managementUrl).to.equal(null);
  });
});
