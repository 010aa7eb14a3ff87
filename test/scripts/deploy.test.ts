import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { drainDeadline } from '../../core/server/connections/listener.ts';
import { readConfig } from '../../core/server/start/config.ts';
import { adminOn } from '../support/commands.ts';
import { spawnCore } from '../support/core.ts';
import { freshDatabase, freshDirectory, startPostgresOfTools } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { skip } from '../support/suites.ts';
import { openDirect } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const deploy = fileURLToPath(new URL('../../core/deploy/', import.meta.url));
const analyze = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' });

describe('the systemd unit (needs systemd-analyze)', () => {
  before(function () {
    if (analyze('--version').error) skip(this, "systemd isn't installed");
  });

  it('is valid, together with its drop-in for PostgreSQL', () => {
    const directory = freshDirectory();
    // `systemd-analyze verify` also checks that the program exists, and callkey-core isn't installed here.
    const unit = readFileSync(join(deploy, 'callkey.service'), 'utf8').replace(/^ExecStart=callkey-core$/m, 'ExecStart=/bin/true');
    const dropIns = join(directory, 'callkey.service.d');
    mkdirSync(dropIns);
    writeFileSync(join(directory, 'callkey.service'), unit);
    writeFileSync(join(dropIns, 'postgresql.conf'), readFileSync(join(deploy, 'callkey-postgresql.conf')));
    const { status, stdout, stderr } = analyze('verify', '--man=no', '--recursive-errors=no', join(directory, 'callkey.service'));
    expect([status, stdout, stderr]).to.deep.equal([0, '', '']);
  });

  it('has an exposure score of at most 2.0 out of 10', () => {
    const { status, stdout } = analyze('security', '--offline=true', '--threshold=20', join(deploy, 'callkey.service'));
    expect(status, stdout).to.equal(0);
  });
});

/** A stand-in for systemd that writes each message it receives as a line. */
const listener = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(s.recv(4096).decode(), flush=True)
`;

describe('a core started by systemd (needs systemd-notify and python3)', () => {
  it("tells systemd when it can respond, and when it's stopping", async function () {
    if (spawnSync('systemd-notify', ['--version']).status !== 0) skip(this, "systemd-notify isn't installed");
    if (spawnSync('python3', ['--version']).status !== 0) skip(this, "python3 isn't installed");
    const socket = join(freshDirectory(), 'notify');
    const systemd = spawn('python3', ['-c', listener, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    const messages: string[] = [];
    createInterface({ input: systemd.stdout }).on('line', (line) => messages.push(line));
    const ended = once(systemd, 'exit');
    try {
      await until(() => messages.includes('bound'));
      const core = await spawnCore(await freshDatabase('sqlite'), { NOTIFY_SOCKET: socket });
      await until(() => messages.includes('READY=1'));
      expect((await ask('GET', `${core.managementUrl}/readyz`)).status).to.equal(200);
      expect(messages.filter((line) => line.startsWith('STOPPING'))).to.deep.equal([]);
      expect(await core.stop()).to.equal(0);
      await until(() => messages.includes('STOPPING=1'));
    } finally {
      systemd.kill('SIGKILL');
      await ended;
    }
  });

  it('has more time to stop than the largest DRAIN_DELAY and the rest of the shutdown take', () => {
    const seconds = (file: string, form: RegExp) => Number(form.exec(readFileSync(join(deploy, file), 'utf8'))?.[1]);
    const environment = { DATABASE_URL: 'sqlite:./x', DRAIN_DELAY: '300' };
    const least = readConfig(environment).drainDelay + drainDeadline.as('seconds');
    expect(() => readConfig({ ...environment, DRAIN_DELAY: '301' })).to.throw();
    expect(seconds('callkey.service', /^TimeoutStopSec=(\d+)$/m)).to.be.above(least);
    expect(seconds('compose.yaml', /stop_grace_period: (\d+)s\n {4}restart/)).to.be.above(least);
  });
});

describe('callkey-service', () => {
  let folder: string;
  let dropIns: string;
  beforeEach(() => {
    folder = freshDirectory();
    dropIns = join(folder, 'callkey.service.d');
    mkdirSync(dropIns);
  });

  function run() {
    const script = readFileSync(join(deploy, 'callkey-service'), 'utf8')
      .replaceAll(/\/etc\/(callkey|systemd\/system)/g, folder)
      .replace('runuser -u callkey -- callkey-admin', 'env');
    return spawnSync('sh', ['-c', script], { encoding: 'utf8', env: { PATH: process.env['PATH'] } });
  }

  it("passes the service's variables and credentials on, as systemd reads them", () => {
    writeFileSync(join(dropIns, 'session-secrets.conf'), '[Service]\nLoadCredential=session-secrets:/etc/callkey/session-secrets\n');
    writeFileSync(join(folder, 'session-secrets'), 'from a credential\n');
    writeFileSync(join(folder, 'environment'), " \tDATABASE_URL=sqlite:/srv/callkey.db \n# PORT=1\nOIDC_NAME=Ada's $HOME\nHOST=::1");
    const { stdout } = run();
    const passed = ['DATABASE_URL=sqlite:/srv/callkey.db', "OIDC_NAME=Ada's $HOME", 'HOST=::1', 'SESSION_SECRETS=from a credential'];
    expect(stdout.split('\n')).to.include.members(passed);
    expect(stdout).not.to.contain('PORT=1');
  });

  it("skips a line whose name isn't valid, with a warning, and reads one with spaces around =, as systemd does", () => {
    writeFileSync(join(folder, 'environment'), 'A-B=secret\nDATABASE_URL\t = sqlite:/srv/callkey.db\nPORT =\nHOST=::1 = x=');
    const { status, stdout, stderr } = run();
    expect([status, stderr]).to.deep.equal([0, `Skipped a line of ${folder}/environment, because A-B isn't a valid name.\n`]);
    expect(stdout.split('\n')).to.include.members(['DATABASE_URL=sqlite:/srv/callkey.db', 'PORT=', 'HOST=::1 = x=']);
    expect(stdout).not.to.contain('A-B');
  });

  it("uses the database of the drop-in for PostgreSQL, and refuses one that it can't find out, such as an encrypted credential", () => {
    writeFileSync(join(folder, 'database-url'), 'postgres://callkey@127.0.0.1/callkey\n');
    copyFileSync(join(deploy, 'callkey-postgresql.conf'), join(dropIns, 'postgresql.conf'));
    writeFileSync(join(folder, 'session-secrets'), 'from a credential\n');
    expect(run().stdout).to.contain('DATABASE_URL=postgres://callkey@127.0.0.1/callkey\n');
    for (const lines of [
      'LoadCredentialEncrypted=database-url:/etc/callkey/database-url.cred\nEnvironment=DATABASE_URL= DATABASE_URL_FILE=%d/database-url\n',
      'Environment="DATABASE_URL=postgres://callkey@127.0.0.1/callkey"\n',
    ]) {
      writeFileSync(join(dropIns, 'postgresql.conf'), `[Service]\n${lines}`);
      const { status, stdout, stderr } = run();
      expect([status, stdout]).to.deep.equal([1, '']);
      expect(stderr).to.contain('sets the database in a way that callkey-service does not read');
    }
  });
});

describe('the script that prepares PostgreSQL for Compose (needs psql)', function () {
  this.timeout(60_000);
  it("creates a role for the core that isn't a superuser and owns only its database", async function () {
    const server = await startPostgresOfTools();
    if (!server) skip(this, 'no PostgreSQL with its tools in /usr/lib/postgresql');
    const { hostname, port, password } = new URL(server.url);
    try {
      const file = join(freshDirectory(), 'password');
      writeFileSync(file, "it's $(secret)\n");
      const env = { PATH: process.env['PATH'] ?? '', PGHOST: hostname, PGPORT: port, PGPASSWORD: password, CALLKEY_PASSWORD_FILE: file };
      const { status, stderr } = spawnSync('sh', [join(deploy, 'postgres-init.sh')], { env, encoding: 'utf8' });
      expect([status, stderr]).to.deep.equal([0, '']);
      const url = `postgres://callkey:${encodeURIComponent("it's $(secret)")}@${hostname}:${port}/callkey`;
      const direct = await openDirect(url);
      const { rows } = await direct.storage.database.read.raw(
        'SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user',
      );
      await direct.close();
      expect(rows).to.deep.equal([{ rolsuper: false, rolcreatedb: false, rolcreaterole: false }]);
      await adminOn(url).json('migrate');
    } finally {
      await server.stop();
    }
  });
});
