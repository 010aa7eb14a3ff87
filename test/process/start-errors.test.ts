import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { ConfigError, readConfig } from '../../core/server/start/config.ts';
import { loadSessionSecrets } from '../../core/server/start/session-secrets.ts';
import { own, startPostgres } from '../../scripts/support/postgres.ts';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { testRandomness } from '../support/clock.ts';
import { type Ended, testSecret } from '../support/commands.ts';
import { connected, failToStart, startCoreHere } from '../support/core.ts';
import { emptyDatabase, freshDatabase, freshDirectory } from '../support/databases.ts';
import { type Listening, listenHere } from '../support/listen.ts';
import { skip } from '../support/suites.ts';

const secrets = { SESSION_SECRETS: testSecret };
/** A user without any rights. */
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;

/** Expects one sentence on standard error that starts with the variable to change, nothing but JSON lines in the log, and the exit code. */
function expectRefusedProcess({ code, stdout, stderr }: Ended, variable: string, ...parts: string[]): void {
  expectSentence(stderr.replace(/\n$/, ''), variable, parts);
  expect(code).to.equal(1);
  for (const line of stdout.split('\n').filter(Boolean)) expect(() => JSON.parse(line)).not.to.throw();
}

/** Expects the same of a core within this process, where the thrown error contains the text that the process would print. */
async function expectRefusal(start: ReturnType<typeof startCoreHere>, variable: string, ...parts: string[]): Promise<void> {
  const error: unknown = await start.then(
    (core) => core.close(),
    (thrown) => thrown,
  );
  if (!(error instanceof ConfigError)) throw new Error('The core has started.', { cause: error });
  expectSentence(error.message, variable, parts);
}

function expectSentence(text: string, variable: string, parts: string[]): void {
  expect(text).to.match(new RegExp(`^${variable}: [^\n]+$`));
  for (const part of parts) expect(text).to.contain(part);
}

describe('a failed start exits with 1 and a one-line reason for', () => {
  describe('a listener', () => {
    let other: Listening;
    let taken: string;
    before(async () => {
      other = await listenHere(createServer());
      taken = String(other.port);
    });
    after(() => other.close());

    it('whose PORT or MANAGEMENT_PORT is in use', async () => {
      for (const variable of ['PORT', 'MANAGEMENT_PORT'])
        await expectRefusal(
          startCoreHere(await freshDatabase('sqlite'), { environment: { [variable]: taken } }),
          variable,
          taken,
          'EADDRINUSE',
        );
    });

    it('whose port is reserved for root (needs root to switch users)', async function () {
      if (!isRoot) skip(this, 'requires root');
      const refused = await failToStart({ PORT: '1', MANAGEMENT_PORT: 'off' }, nobody);
      if (refused.code === null) skip(this, 'in this container, every user may listen on every port');
      expectRefusedProcess(refused, 'PORT', 'EACCES');
    });

    it("whose address doesn't belong to this machine", async () => {
      // The second address is a link-local address without its zone.
      for (const host of ['192.0.2.1', 'fe80::1']) {
        const start = startCoreHere(await freshDatabase('sqlite'), { environment: { HOST: host } });
        await expectRefusal(start, 'HOST', host, "isn't an address of this machine");
      }
    });
  });

  describe('a certificate (created with openssl)', () => {
    const directory = freshDirectory();
    const file = (name: string) => join(directory, name);
    before(function () {
      if (!hasOpenssl) skip(this, "openssl isn't installed");
      for (const name of ['one', 'two']) {
        const { TLS_CERT_FILE, TLS_KEY_FILE } = selfSignedCertificate();
        copyFileSync(TLS_CERT_FILE, file(`${name}.crt`));
        copyFileSync(TLS_KEY_FILE, file(`${name}.key`));
      }
      execFileSync('openssl', ['pkey', '-aes256', '-passout', 'pass:secret', '-in', file('one.key'), '-out', file('locked.key')]);
      symlinkSync('/dev/zero', file('endless'));
      writeFileSync(file('nonsense'), '-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n');
    });

    for (const [what, cert, key, variable, part] of [
      ["that doesn't match its key", 'one.crt', 'two.key', 'TLS_KEY_FILE', "doesn't match the certificate"],
      ['that is invalid', 'nonsense', 'one.key', 'TLS_CERT_FILE', "doesn't contain a certificate in PEM format"],
      ['with an invalid key', 'one.crt', 'one.crt', 'TLS_KEY_FILE', "doesn't contain an unencrypted private key in PEM format"],
      ['with an encrypted key', 'one.crt', 'locked.key', 'TLS_KEY_FILE', "doesn't contain an unencrypted private key in PEM format"],
      ["that doesn't exist", 'nowhere', 'one.key', 'TLS_CERT_FILE', 'ENOENT'],
      ['in a file that never ends', 'endless', 'one.key', 'TLS_CERT_FILE', 'is larger than 1 MiB'],
    ] as const) {
      it(what, async () => {
        const start = startCoreHere(await emptyDatabase('sqlite'), {
          environment: { TLS_CERT_FILE: file(cert), TLS_KEY_FILE: file(key) },
        });
        await expectRefusal(start, variable, part);
      });
    }
  });

  describe('a SQLite file', () => {
    it("that isn't a database", async () => {
      const file = join(freshDirectory(), 'photo.jpg');
      writeFileSync(file, 'x'.repeat(10_000));
      await expectRefusal(startCoreHere(`sqlite:${file}`), 'DATABASE_URL', file, "isn't a SQLite database");
    });

    it('that is a folder or a pipe, next to which no session secret is left', async () => {
      const folder = freshDirectory();
      await expectRefusal(startCoreHere(`sqlite:${folder}`), 'DATABASE_URL', folder, 'it is a folder');
      const pipe = join(folder, 'pipe');
      execFileSync('mkfifo', [pipe]);
      expectRefusedProcess(await failToStart({ DATABASE_URL: `sqlite:${pipe}` }), 'DATABASE_URL', pipe, "it isn't a regular file");
      expect(readdirSync(folder)).to.deep.equal(['pipe']);
    });

    it('whose parent is a file', async () => {
      const file = join(freshDirectory(), 'file');
      writeFileSync(file, '');
      await expectRefusal(startCoreHere(`sqlite:${file}/callkey.db`), 'DATABASE_URL', file, "part of its path isn't a folder");
    });

    for (const [what, more] of [
      ['', secrets],
      [', without a place for its secret', {}],
    ] as const) {
      it(`in a read-only folder${what} (run as another user if root)`, async () => {
        const folder = join(freshDirectory(), 'closed');
        mkdirSync(folder, { mode: 0o755 });
        chmodSync(join(folder, '..'), 0o755);
        chmodSync(folder, 0o555);
        const refused = await failToStart({ DATABASE_URL: `sqlite:${folder}/callkey.db`, ...more }, isRoot ? nobody : undefined);
        expectRefusedProcess(refused, 'DATABASE_URL', folder, 'permission denied', 'EACCES');
      });
    }
  });

  describe('a stored session secret', () => {
    const load = async (database: string) => {
      throw new Error(`taken: ${loadSessionSecrets(readConfig({ DATABASE_URL: database }), testRandomness)}`);
    };

    for (const [what, content, mode, part] of [
      ['that is empty', '\n', 0o600, 'is empty. Delete the file'],
      ['that is too short', 'too short\n', 0o600, 'must contain the 43 characters that a core writes there. Delete the file'],
      ['that has several lines', `${'x'.repeat(43)}\n${'y'.repeat(43)}\n`, 0o600, 'must contain the 43 characters'],
      ['that has only zero bytes, as after a power failure', '\0'.repeat(44), 0o600, 'must contain the 43 characters'],
      ['that everyone can read', `${'x'.repeat(43)}\n`, 0o644, 'Run chmod 600'],
    ] as const) {
      it(what, async () => {
        const database = await freshDatabase('sqlite');
        const file = `${database.replace('sqlite:', '')}.session-secret`;
        writeFileSync(file, content);
        chmodSync(file, mode);
        await expectRefusal(load(database), 'SESSION_SECRETS', file, part);
      });
    }

    it('whose link leads nowhere', async () => {
      const database = await freshDatabase('sqlite');
      const file = `${database.replace('sqlite:', '')}.session-secret`;
      symlinkSync('/nowhere/secret', file);
      await expectRefusal(load(database), 'SESSION_SECRETS', file, "can't be read (ENOENT");
    });
  });

  describe('a PostgreSQL server', () => {
    let database: string;
    before(async () => {
      database = await freshDatabase('postgres');
    });
    const changed = (change: Partial<URL>) => Object.assign(new URL(database), change).href;
    /** Creates a role that may only log in. @returns its name */
    async function createRole(sql: (role: string) => string = () => ''): Promise<string> {
      const role = `role_${randomBytes(4).toString('hex')}`;
      const client = await connected(database);
      await client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'; ${sql(role)}`);
      await client.end();
      return role;
    }

    it('with an incorrect password', async () => {
      const refused = await failToStart({ DATABASE_URL: changed({ password: 'a wrong password' }), ...secrets });
      expectRefusedProcess(refused, 'DATABASE_URL', 'password authentication failed for user "postgres"');
      expect(refused.stdout + refused.stderr)
        .not.to.match(/a(%20| )wrong/)
        .and.not.to.contain('   at ');
    });

    it('whose database stores text in another encoding', async () => {
      const name = `latin1_${randomBytes(4).toString('hex')}`;
      const client = await connected(database);
      await client.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`);
      await client.end();
      const start = startCoreHere(changed({ pathname: `/${name}` }));
      await expectRefusal(start, 'DATABASE_URL', 'stores text as LATIN1', "ENCODING 'UTF8'");
    });

    it('on which the search path names no schema', async () => {
      const start = startCoreHere(changed({ search: '?options=-csearch_path%3D' }));
      await expectRefusal(start, 'DATABASE_URL', 'no schema has been selected', 'set search_path');
    });

    it("that refuses options that don't exist", async () => {
      const start = startCoreHere(changed({ search: `?options=${encodeURIComponent('-c canary=1')}` }));
      await expectRefusal(start, 'DATABASE_URL', 'unrecognized configuration parameter', 'options in DATABASE_URL');
    });

    it("on which the role can't change all tables", async () => {
      const username = await createRole(
        (role) => `GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}; GRANT INSERT, UPDATE, DELETE ON sessions TO ${role}`,
      );
      const start = startCoreHere(changed({ username, password: 'x' }));
      await expectRefusal(start, 'DATABASE_URL', 'lacks INSERT, UPDATE, DELETE on accounts', 'Grant the user');
    });

    it('whose schema has to be migrated by another role', async () => {
      const { pathname } = new URL(await emptyDatabase('postgres'));
      const start = startCoreHere(changed({ pathname, username: await createRole(), password: 'x' }));
      await expectRefusal(start, 'DATABASE_URL', 'permission denied for schema public', 'Migrate as the role that owns the tables');
    });

    it("that doesn't use TLS, if the address requires it", async () => {
      const start = startCoreHere(changed({ search: '?sslmode=require' }));
      await expectRefusal(start, 'DATABASE_URL', "the server doesn't use TLS", 'remove sslmode');
    });

    it("that isn't PostgreSQL, but another program", async () => {
      const { port, close } = await listenHere(
        createServer((socket) =>
          socket
            .on('error', () => undefined)
            .resume()
            .end('HTTP/1.1 400 Bad Request\r\n\r\n'),
        ),
      );
      for (const search of ['', '?sslmode=require'])
        await expectRefusal(
          startCoreHere(`postgres://u:canary@127.0.0.1:${port}/callkey${search}`),
          'DATABASE_URL',
          'Check the host and port',
        );
      await close();
    });

    it("whose authority's file is missing", async () => {
      const start = startCoreHere(changed({ search: '?sslmode=verify-full&sslrootcert=/nowhere/ca.pem' }));
      await expectRefusal(start, 'DATABASE_URL', 'no such file or folder: /nowhere/ca.pem');
    });

    it("whose certificate isn't trusted, or is for another name (needs openssl)", async function () {
      if (!hasOpenssl) skip(this, "openssl isn't installed");
      const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key } = selfSignedCertificate();
      own(dirname(key));
      const server = await startPostgres(['ssl=on', `ssl_cert_file=${cert}`, `ssl_key_file=${key}`]);
      const addresses = ['?sslmode=require', `?sslmode=verify-full&sslrootcert=${cert}`].map(
        (search) => Object.assign(new URL(server.url), { search, hostname: '127.0.0.1' }).href,
      );
      await expectRefusal(startCoreHere(addresses[0] ?? ''), 'DATABASE_URL', "doesn't trust the authority", 'Set sslrootcert');
      await expectRefusal(startCoreHere(addresses[1] ?? ''), 'DATABASE_URL', 'is for another host name', 'Use a host name');
      await server.stop();
    });
  });
});
