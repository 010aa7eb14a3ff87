import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { adminCommand } from '../core/program.ts';
import { ConfigError, readConfig, readDatabaseLocation, readManagementAddress, suggestAdmin } from '../core/server/start/config.ts';
import { freshDirectory } from './support/databases.ts';
import { signingSecret } from './support/provider.ts';

const secret = 'a secret for tests of at least 32 characters';

function readError(environment: Record<string, string>): string {
  try {
    readConfig(environment);
    return 'none';
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message;
  }
}

describe('the configuration', () => {
  it('has defaults for everything except the session secret', () => {
    const config = readConfig({});
    expect(config).to.deep.include({ host: '127.0.0.1', port: 8080, drainDelay: 0, tls: null, sessionSecrets: null, trustedProxies: [] });
    expect(config).to.deep.include({
      management: { host: '127.0.0.1', port: 8081, names: [] },
      dialer: { kind: 'off' },
      retentionDays: { contacts: 90, auditEvents: null },
      logLevel: 'info',
    });
  });

  it('treats an empty variable as unset, and ignores spaces and CR around values', () => {
    expect(readConfig({ PORT: '', LOG_LEVEL: '' })).to.deep.include({ port: 8080, logLevel: 'info' });
    const { database, port } = readConfig({ DATABASE_URL: ' sqlite:/data/callkey.db ', PORT: '21200\r' });
    expect({ database, port }).to.deep.equal({ database: { kind: 'sqlite', filename: '/data/callkey.db' }, port: 21_200 });
  });

  it("resolves a SQLite file's path against the current folder", () => {
    for (const [url, filename] of [
      ['sqlite:rel.db', resolve('rel.db')],
      ['sqlite:./rel.db', resolve('rel.db')],
      ['sqlite:/abs.db', '/abs.db'],
      ['sqlite:///abs.db', '/abs.db'],
    ] as const)
      expect(readDatabaseLocation({ DATABASE_URL: url }), url).to.deep.equal({ kind: 'sqlite', filename });
  });

  it('ignores what Kubernetes sets for services called dialer and management', () => {
    const service = (name: string) => ({
      ...{ [`${name}_SERVICE_HOST`]: '10.96.0.7', [`${name}_SERVICE_PORT`]: '8081', [`${name}_PORT`]: 'tcp://10.96.0.7:8081' },
      [`${name}_PORT_8081_TCP`]: 'tcp://10.96.0.7:8081',
    });
    expect(readConfig({ ...service('DIALER'), ...service('MANAGEMENT') })).to.deep.equal(readConfig({}));
  });

  it('accepts an IPv6 address in brackets, as in a URL', () => {
    const config = readConfig({ HOST: '[::1]', MANAGEMENT_HOST: '[::]' });
    expect([config.host, config.management?.host]).to.deep.equal(['::1', '::']);
    expect(readManagementAddress({ MANAGEMENT_HOST: '[::]' })?.host).to.equal('::1');
  });

  it('refuses the same port for both listeners, unless their addresses differ', () => {
    const read = (host: string, other: string, port = '9000') =>
      readError({ HOST: host, MANAGEMENT_HOST: other, PORT: port, MANAGEMENT_PORT: port });
    const refusal = 'MANAGEMENT_PORT: must differ from PORT (9000), because HOST and MANAGEMENT_HOST overlap';
    for (const [host, other] of [
      ['', '127.0.0.1'],
      ['localhost', 'localhost'],
      ['0.0.0.0', '127.0.0.1'],
      ['10.0.0.7', '0.0.0.0'],
      ['::', '127.0.0.1'],
      ['::1', '[::]'],
    ] as const)
      expect(read(host, other), `${host} ${other}`).to.equal(refusal);
    for (const [host, other, port] of [
      ['127.0.0.1', '127.0.0.2'],
      ['0.0.0.0', '::1'],
      ['127.0.0.1', '127.0.0.1', '0'],
    ] as const)
      expect(read(host, other, port)).to.equal('none');
    expect(readError({ PORT: '8081' })).to.contain('(8081)');
    expect(readError({ PORT: '8081', MANAGEMENT_PORT: 'off' })).to.equal('none');
  });

  it("can't be changed after it's read", () => {
    expect(Object.isFrozen(readConfig({}))).to.equal(true);
  });

  it('has a drain delay for load balancers of 5 s, of none on loopback, or of as long as configured on any host', () => {
    for (const host of ['127.0.0.1', '127.3.2.1', '::1', 'localhost']) expect(readConfig({ HOST: host }).drainDelay, host).to.equal(0);
    for (const host of ['0.0.0.0', '10.0.0.7']) expect(readConfig({ HOST: host }).drainDelay, host).to.equal(5);
    expect(readConfig({ DRAIN_DELAY: '30' }).drainDelay).to.equal(30);
    expect(readConfig({ HOST: '0.0.0.0', DRAIN_DELAY: '0' }).drainDelay).to.equal(0);
  });

  it('reads lists with spaces around their commas', () => {
    expect(readConfig({ TRUSTED_PROXIES: ' 10.0.0.0/8 , ::1 ' }).trustedProxies).to.deep.equal(['10.0.0.0/8', '::1']);
    expect(readConfig({ SESSION_SECRETS: `${secret} new , ${secret} old` }).sessionSecrets).to.deep.equal([
      `${secret} new`,
      `${secret} old`,
    ]);
  });

  const dialer = { DIALER: 'webhook', DIALER_URL: 'https://calls.example/', DIALER_SECRETS: signingSecret };
  it("assumes that a webhook doesn't deduplicate hand-offs unless DIALER_DEDUPLICATES says so", () => {
    expect(readConfig(dialer).dialer).to.deep.include({ kind: 'webhook', deduplicates: false, concurrency: 10 });
    expect(readConfig({ ...dialer, DIALER_DEDUPLICATES: 'true' }).dialer).to.deep.include({ deduplicates: true });
  });

  it('reads secrets, and the database address with its password, from files', () => {
    const directory = freshDirectory();
    const file = (name: string, text: string) => {
      writeFileSync(join(directory, name), text);
      return join(directory, name);
    };
    const { DIALER_SECRETS, ...others } = dialer;
    const config = readConfig({
      ...others,
      DATABASE_URL_FILE: file('url', 'postgres://core:password@localhost/callkey\n'),
      SESSION_SECRETS_FILE: file('session', `${secret} new,${secret} old\n`),
      DIALER_SECRETS_FILE: file('dialer', `${DIALER_SECRETS}\n`),
      ...{ PUBLIC_URL: 'https://calls.example.com', OIDC_ISSUER: 'https://login.example.com', OIDC_CLIENT_ID: 'callkey' },
      OIDC_CLIENT_SECRET_FILE: file('client', 'from a file\n'),
    });
    expect(config.oidc?.clientSecret).to.equal('from a file');
    expect(config.database).to.include({ kind: 'postgres' });
    expect(config.sessionSecrets).to.deep.equal([`${secret} new`, `${secret} old`]);
    expect(config.dialerSecrets).to.deep.equal([DIALER_SECRETS]);
  });

  it("reads only the secrets that it's asked for", () => {
    const environment = { DATABASE_URL: 'postgres://localhost/callkey', SESSION_SECRETS_FILE: '/nowhere/secrets' };
    expect(readDatabaseLocation(environment)).to.include({ kind: 'postgres' });
  });

  for (const url of ['https://calls.example/x', 'http://127.0.0.1:9000/', 'http://localhost/', 'http://[::1]:1/']) {
    it(`accepts ${url} as the webhook`, () => {
      expect(readConfig({ ...dialer, DIALER_URL: url }).dialer).to.deep.include({ url });
    });
  }

  it('is documented: every variable, with its bounds and unit', () => {
    const read = (path: string) => readFileSync(new URL(`../core/${path}`, import.meta.url), 'utf8');
    const rows = [...read('docs/operations.md').matchAll(/^\| ((?:`[A-Z_]+`(?:, )?)+) \|[^|]*\| (.*) \|$/gm)].map(
      ([, names = '', text = '']) => ({ names: names.match(/[A-Z_]+/g) ?? [], text }),
    );
    const known = [...read('server/start/config.ts').matchAll(/^ {2}([A-Z][A-Z_]+): /gm)].map(([, name]) => name);
    const documented = rows.flatMap(({ names }) => names);
    expect(documented.filter((name) => !name.endsWith('_FILE') || name.startsWith('TLS_'))).to.have.members(known);
    for (const { names, text } of rows) {
      const [unit = 'number'] = /seconds|days/.exec(text) ?? [];
      const [, min = '', max = ''] = /([\d.]+) to (\d+)/.exec(text) ?? [];
      // Just beyond a bound of 0.1 is 0.09, beyond a whole number the next one.
      const steps = min.includes('.') ? 100 : 1;
      const outside = [Number(min) * steps - 1, Number(max) * steps + 1].map((bound) => String(bound / steps));
      for (const name of min === '' ? [] : names) {
        for (const value of [min, max]) expect(readError({ [name]: value }), name).to.equal('none');
        for (const value of outside) expect(readError({ [name]: value }), name).to.contain(unit);
      }
    }
    for (const name of ['RETENTION_DAYS', 'AUDIT_RETENTION_DAYS']) {
      for (const value of ['0', '100000']) expect(readError({ [name]: value })).to.contain('a number of days from 1 to 99999, or off');
      for (const value of ['1', '99999']) expect(readError({ [name]: value })).to.equal('none');
    }
    expect(readError({ DIALER_LIVE_CALLS: '1.5' })).to.equal('DIALER_LIVE_CALLS: must be a whole number from 1 to 100000');
  });

  it('is documented for the CLI: its page has every variable that its code has, and no other', () => {
    const cli = new URL('../cli/', import.meta.url);
    const list = (files: readonly string[]) => [
      ...new Set(files.flatMap((file) => readFileSync(new URL(file, cli), 'utf8').match(/\bCALLKEY_[A-Z_]+/g) ?? [])),
    ];
    expect(list(['README.md'])).to.have.members(list(globSync('**/*.ts', { cwd: fileURLToPath(cli) })));
  });

  it("doesn't trust all addresses as proxies, and says so", () => {
    for (const all of ['0.0.0.0/0', '::/0', '::ffff:0:0/96', '10.0.0.0/8,0.0.0.0/0', '0.0.0.0/1,128.0.0.0/1'])
      expect(readError({ TRUSTED_PROXIES: all })).to.contain('must not include all addresses');
    for (const wrong of ['everyone', '10', '10.0.0.0/33'])
      expect(readError({ TRUSTED_PROXIES: wrong })).to.contain('must be IP addresses or CIDR ranges');
  });

  for (const [variable, value, more] of [
    ['PORT', 'http', {}],
    ['MANAGEMENT_PORT', 'of', {}],
    ['MANAGEMENT_NAMES', 'core.example.com:8081', {}],
    ['MANAGEMENT_NAMES', '*', {}],
    ['DATABASE_URL', 'mysql://localhost/x', {}],
    ['DATABASE_URL', 'sqlite:', {}],
    ['DATABASE_URL', 'sqlite::memory:', {}],
    ['DATABASE_URL', 'sqlite://rel.db', {}],
    ['DATABASE_URL', 'sqlite://host/rel.db', {}],
    ['DATABASE_URL', 'sqlite: /callkey.db', {}],
    // These would create another file.
    ...['?mode=rwc', '#x', '%20'].map((end) => ['DATABASE_URL', `sqlite:/data/callkey.db${end}`, {}] as const),
    ['DATABASE_URL', 'sqlite:~/callkey.db', {}],
    ['DATABASE_URL', 'sqlite:$HOME/callkey.db', {}],
    ['DATABASE_URL', 'sqlite:“/data/callkey.db”', {}],
    ['DATABASE_URL', 'sqlite:file:/data/callkey.db', {}],
    ['DATABASE_URL', "sqlite:'/data/callkey.db'", {}],
    ['DATABASE_URL', 'sqlite:/data/callkey\u200b.db', {}],
    // SQLite would delete these when callkey.db is opened.
    ...(['-wal', '-shm', '-journal', '-WAL'] as const).map((end) => ['DATABASE_URL', `sqlite:/data/callkey.db${end}`, {}] as const),
    ['HOST', '127.0.0.1\r\n::1', {}],
    ['LOG_LEVEL', '"info"', {}],
    ['SESSION_SECRETS', `'${secret}'`, {}],
    ['SESSION_SECRETS', `“${secret}”`, {}],
    ['SESSION_SECRETS', 'too short', {}],
    ['SESSION_SECRETS', '', { DATABASE_URL: 'postgres://localhost/x' }],
    ['TRUSTED_PROXIES', '010.0.0.1', {}],
    ['LOG_LEVEL', 'loud', {}],
    ['DRAIN_DELAY', '5s', {}],
    ['AUDIT_RETENTION_DAYS', 'never', {}],
    ['SECOND_FACTOR', 'on', {}],
    ['DIALER', 'phone', {}],
    ['DIALER_URL', 'http://calls.example/', dialer],
    ['DIALER_URL', 'https://user:pass@calls.example/', dialer],
    ['DIALER_URL', '', dialer],
    ['DIALER_SECRETS', secret, dialer],
    ['DIALER_SECRETS', `${signingSecret},whsec_~`, dialer],
    ['DIALER_SECRETS_FILE', '/nowhere/secrets', { DIALER: 'off' }],
    ['SESSION_SECRETS_FILE', '/nowhere/secrets', { SESSION_SECRETS: secret }],
    ['DATABASE_URL_FILE', '/dev/null', {}],
    ['SESSION_SECRETS', '\0'.repeat(44), {}],
    ['DIALER_SECRETS', '', dialer],
    ['DIALER_DEDUPLICATES', 'yes', dialer],
    ['TLS_CERT_FILE', '/nowhere/cert.pem', { TLS_KEY_FILE: '/nowhere/key.pem' }],
    ['TLS_KEY_FILE', '', { TLS_CERT_FILE: '/nowhere/cert.pem' }],
  ] as const) {
    it(`refuses ${variable}=${JSON.stringify(value)} with a one-line error that names the variable`, () => {
      const message = readError({ ...more, [variable]: value });
      expect(message).to.match(new RegExp(`^${variable}: [^\n]+$`));
      if (value.length > 7) expect(message.split(' ')).not.to.include(value);
    });
  }
});

describe("a provider's configuration", () => {
  const provider = {
    PUBLIC_URL: 'HTTPS://Calls.Example.com:443/',
    OIDC_ISSUER: 'https://login.example.com/realms/staff/',
    OIDC_CLIENT_ID: 'callkey',
    OIDC_CLIENT_SECRET: 'a secret',
  };
  const without = (name: keyof typeof provider) => ({ ...provider, [name]: '' });
  const microsoft = 'https://login.microsoftonline.com';

  it('is complete with an issuer, a client and a public URL', () => {
    expect(readConfig(provider)).to.deep.include({
      passwordSignIn: true,
      oidc: {
        issuer: 'https://login.example.com/realms/staff/',
        clientId: 'callkey',
        clientSecret: 'a secret',
        publicUrl: 'https://calls.example.com',
        name: 'single sign-on',
        email: 'verified',
      },
    });
    expect(readConfig({ PUBLIC_URL: 'https://calls.example.com' }).oidc).to.equal(null);
  });

  for (const [environment, message] of [
    [without('PUBLIC_URL'), 'PUBLIC_URL: is required when OIDC_ISSUER is set'],
    [without('OIDC_CLIENT_ID'), 'OIDC_CLIENT_ID: is required when OIDC_ISSUER is set'],
    [without('OIDC_CLIENT_SECRET'), 'OIDC_CLIENT_SECRET: is required when OIDC_ISSUER is set'],
    [without('OIDC_ISSUER'), 'OIDC_ISSUER: is required when OIDC_CLIENT_ID is set'],
    [{ OIDC_EMAIL: 'trusted' }, 'OIDC_ISSUER: is required when OIDC_EMAIL is set'],
    [
      { ...provider, OIDC_ISSUER: 'http://login.example.com' },
      'OIDC_ISSUER: must be an https URL, or an http URL on this machine, without a query',
    ],
    [{ ...provider, PUBLIC_URL: 'calls.example.com' }, 'PUBLIC_URL: must be an https URL, or an http URL on this machine, without a query'],
    [{ ...provider, OIDC_EMAIL: 'yes' }, 'OIDC_EMAIL: must be verified or trusted'],
    [{ ...provider, OIDC_NAME: 'x'.repeat(41) }, 'OIDC_NAME: must be 1 to 40 characters, without control characters'],
    [{ ...provider, WEB_CONSOLE: 'off' }, 'WEB_CONSOLE: must be on when OIDC_ISSUER is set'],
    [{ ...provider, PASSWORD_SIGN_IN: 'no' }, 'PASSWORD_SIGN_IN: must be on or off'],
    [{ PASSWORD_SIGN_IN: 'off' }, "PASSWORD_SIGN_IN: can't be off without OIDC_ISSUER, because no one could sign in"],
    ...['common', 'organizations', 'consumers', '9188040d-6c67-4c5b-b112-36a304b66dad'].map(
      (tenant) =>
        [{ ...provider, OIDC_ISSUER: `${microsoft}/${tenant}/v2.0` }, 'OIDC_ISSUER: must contain the ID of your own tenant'] as const,
    ),
    ...['https://accounts.google.com', 'https://gitlab.com', 'https://login.salesforce.com', 'https://SLACK.com/'].map(
      (issuer) =>
        [
          { ...provider, OIDC_ISSUER: issuer, OIDC_EMAIL: 'trusted' },
          'OIDC_EMAIL: must be verified with this issuer, because anyone can get an account there',
        ] as const,
    ),
  ] as const) {
    const issuer = 'OIDC_ISSUER' in environment ? environment.OIDC_ISSUER : '';
    const source = issuer === '' || issuer === provider.OIDC_ISSUER ? '' : ` (${issuer})`;
    it(`is refused with "${message}"${source}`, () => expect(readError(environment)).to.equal(message));
  }

  it('can trust every email address of a single Microsoft tenant', () => {
    const tenant = { ...provider, OIDC_ISSUER: `${microsoft}/01a20138-3d19-7da7-9907-3a9fb48fa32a/v2.0`, OIDC_EMAIL: 'trusted' };
    expect(readConfig(tenant).oidc?.email).to.equal('trusted');
  });
});

describe('a suggested admin command', () => {
  const suggest = (url?: string, isWindows = false) =>
    suggestAdmin(readDatabaseLocation({ DATABASE_URL: url }), ['user', 'password', 'admin@localhost'], isWindows);
  const command = `${adminCommand} user password admin@localhost`;

  it('acts on the database that DATABASE_URL names', () => {
    for (const url of [undefined, 'sqlite:data/callkey.db']) expect(suggest(url)).to.equal(`Run ${command}`);
    expect(suggest('sqlite:/srv/calls 1.db')).to.equal(`Run DATABASE_URL='sqlite:/srv/calls 1.db' ${command}`);
    expect(suggest('sqlite:C:/calls.db', true)).to.equal(`With the same DATABASE_URL, run ${command}`);
  });

  it("doesn't contain the address of a server, which may have a password", () => {
    expect(suggest('postgres://callkey:secret@db/callkey')).to.equal(`With the same DATABASE_URL, run ${command}`);
  });
});
