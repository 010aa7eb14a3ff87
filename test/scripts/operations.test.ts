import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { readConfig } from '../../core/server/start/config.ts';
import { type ClonedMachine, cloneMachine } from '../support/cloned-machine.ts';
import { buildWebConsole } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';
import { skip } from '../support/suites.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const docs = join(root, 'core', 'docs');
const pages = ['operations.md', ...globSync('operations/*.md', { cwd: docs })];
const read = (page: string) => readFileSync(join(docs, page), 'utf8');
const { version, dependencies }: { version: string; dependencies: Record<string, string> } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
);

type Block = { id: string; text: string; kind: string };

/** Returns the commands of each page. Their IDs consist of the page, the heading and the number of the block below it. */
const blocks: readonly Block[] = pages.flatMap((page) =>
  read(page)
    .split(/^(?=#+ )/m)
    .flatMap((section) => {
      const [, heading = ''] = /^#+ (.*)/.exec(section) ?? [];
      const found = [...section.matchAll(/^```(sh|console)(?: (\w+))?\n(.*?)^```/gms)];
      return found.map(([, language = '', kind = language, content = ''], index) => ({
        id: `${basename(page, '.md')}: ${heading}${index === 0 ? '' : ` ${index + 1}`}`,
        kind,
        text: language === 'sh' ? content : [...content.matchAll(/^\$ (.*)$/gm)].map(([, line]) => `${line}\n`).join(''),
      }));
    }),
);

/** Programs of other people that this machine lacks, or that would need a network. */
const standIns: Record<string, string> = {
  // Installs what npm would: the package, with the user's umask, and its dependencies, from this checkout.
  npm: `#!/bin/bash
set -eu
modules=/usr/local/lib/node_modules
case "$1 $2" in
  'root --global') echo $modules ;;
  'uninstall --global') rm -rf "$modules/$3" /usr/local/bin/callkey-core /usr/local/bin/callkey-admin ;;
  'install --global')
    rm -rf $modules/@callkey/core
    mkdir -p $modules/@callkey/core/node_modules
    tar --extract --no-same-permissions --no-same-owner --file "\${@: -1}" --directory $modules/@callkey/core --strip-components=1
    for name in ${Object.keys(dependencies).join(' ')}; do ln -s /opt/node_modules/$name $modules/@callkey/core/node_modules/ 2> /dev/null || true; done
    for command in core admin; do ln -sf $modules/@callkey/core/bin/callkey-$command.js /usr/local/bin/callkey-$command; done ;;
  *) echo "npm $*" >&2; exit 1 ;;
esac
`,
};

/** Programs that the pages expect on the reader's machine. */
const programs = ['nginx', 'openssl', 'pgbouncer', 'curl', 'promtool', 'pg_createcluster'];

/** What a block needs that its page expects the reader to have. */
const preparations: Record<string, string> = {
  'proxy-and-tls: On the same machine 2': `mkdir -p /etc/ssl/callkey
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 -subj /CN=callkey.example.com -keyout /etc/ssl/callkey/key.pem -out /etc/ssl/callkey/cert.pem`,
  'backup-and-restore: Backup and restore': 'touch --date="40 days ago" /var/backups/callkey/callkey-0.0.9-20200101T000000Z.backup',
  'backup-and-restore: On another machine': `cp "$(ls -t /var/backups/callkey/*.backup | head -n 1)" /var/lib/callkey/callkey.db.session-secret .
rm -rf /var/backups/callkey /var/lib/callkey/callkey.db.session-secret`,
  'upgrade-and-rollback: Upgrade and rollback': 'callkey-service partner add Before',
  'upgrade-and-rollback: Rollback': 'callkey-service partner add After',
  'upgrade-and-rollback: From a checkout to the package': `mkdir -p /srv/callkey/data
export DATABASE_URL=sqlite:/srv/callkey/data/callkey.db
[ -f /srv/callkey/data/callkey.db ] || callkey-admin partner add Checkout
echo ${'x'.repeat(43)} > /srv/callkey/data/callkey.db.session-secret`,
  'postgresql: PostgreSQL': 'systemctl start postgresql@15-main',
  'postgresql: Two roles': 'systemctl start postgresql@15-main',
};

const metric = (name: string) => `curl --fail --silent http://127.0.0.1:8081/metrics | grep '^${name} '`;
const partners = `callkey-service --json partner list | grep --only-matching '"name":"[^"]*"' | sort | tr '\\n' ' '`;

/** What's true after a block has run. Each prints something that matches. */
const results: Record<string, readonly (readonly [script: string, output: RegExp])[]> = {
  'install: Install 2': [['callkey-core --version', new RegExp(`^${version}\n$`)]],
  'install: The service': [
    ['curl --fail --silent http://127.0.0.1:8081/readyz', /"ready"/],
    ['systemctl list-timers --all --no-pager', /callkey-backup\.timer/],
    // The timer's unit, of which metrics know.
    ['systemctl start callkey-backup; ls /var/backups/callkey', /^callkey-\d+\.\d+\.\d+-\d{8}T\d{6}Z\.backup\n$/m],
    [metric('callkey_last_backup_timestamp_seconds'), /seconds 1\.?\d+/],
  ],
  'proxy-and-tls: On the same machine 2': [
    ['curl --fail --silent --insecure --head https://127.0.0.1/', /^strict-transport-security: max-age=31536000/im],
    [
      'systemctl reset-failed; systemctl restart callkey && curl --silent --insecure --output /dev/null --write-out "%{http_code}" https://127.0.0.1/console/session',
      /^401$/,
    ],
  ],
  'proxy-and-tls: A second core': [
    ['curl --fail --silent http://127.0.0.2:8081/readyz', /"ready"/],
    // It would keep the following restores from running.
    ['systemctl disable --now callkey-2 2> /dev/null; systemctl is-active callkey-2 || true', /^inactive$/m],
    // From here on, no proxy has to notice that a core is stopping.
    ["sed -i 's/^DRAIN_DELAY=5/DRAIN_DELAY=0/' /etc/callkey/environment && systemctl restart callkey && echo ok", /ok/],
  ],
  'proxy-and-tls: TLS without a proxy': [
    ['curl --fail --silent --insecure --head https://127.0.0.1:8080/', /^strict-transport-security/im],
    [metric('callkey_certificate_expires_timestamp_seconds'), /seconds 1\.?\d+/],
    ["sed -i '/^TLS_/d' /etc/callkey/environment && systemctl restart callkey && echo ok", /ok/],
  ],
  'postgresql: PostgreSQL': [
    ['callkey-service --json check', /"ok":true/],
    // Nor is it the password if the address has none.
    ['PGPASSWORD=$(cat /etc/callkey/database-url) psql --host=127.0.0.1 --username=callkey 2>&1 || true', /authentication failed/],
  ],
  'secrets: Secrets': [
    ['tr "\\0" "\\n" < /proc/$(systemctl show --property=MainPID --value callkey)/environ', /^DIALER_SECRETS_FILE=\/run\//m],
  ],
  'backup-and-restore: On another machine': [
    [
      'ls -l /var/backups/callkey /var/lib/callkey',
      /-rw------- 1 callkey callkey .* callkey-[^\n]*\.backup\n.*-rw------- 1 callkey callkey [^\n]* callkey\.db\.session-secret/s,
    ],
  ],
  'backup-and-restore: Backup and restore': [
    ['ls -l /var/backups/callkey', /^(?!.*callkey-0\.0\.9).*-rw------- 1 callkey callkey [^\n]* callkey-[\d.]+-\d{8}T\d{6}Z\.backup/s],
  ],
  'backup-and-restore: Backup and restore 2': [
    // As cron runs it.
    [
      `sleep 1; env --ignore-environment PATH=/usr/bin:/bin sh -c "$(sed -n 's/^17 3 \\* \\* \\* root //p' /etc/cron.d/callkey-backup)"`,
      /^Wrote /,
    ],
  ],
  'upgrade-and-rollback: Upgrade and rollback': [
    ['curl --fail --silent http://127.0.0.1:8081/healthz', /"version":"0\.2\.0"/],
    [`ls /var/backups/callkey`, new RegExp(`callkey-${version}-`)],
  ],
  'backup-and-restore: Restore': [['ls /var/backups/callkey', /^before-restore-/m]],
  'upgrade-and-rollback: Rollback 2': [
    ['curl --fail --silent http://127.0.0.1:8081/healthz', new RegExp(`"version":"${version}"`)],
    [partners, /^(?!.*After).*Before/],
  ],
  'upgrade-and-rollback: From a checkout to the package': [[partners, /Checkout/]],
  'install: Uninstall': [
    ['rm -rf /etc/systemd/system/callkey-2.service*; ls /usr/local/bin /usr/local/sbin /etc/systemd/system', /^(?!.*callkey)/s],
  ],
};

/** Blocks that a clone of this machine can't run, and what checks them instead. */
const elsewhere: Record<string, string> = {
  'install: Install': 'test/scripts/pack-core.test.ts runs the script',
  'install: In a container': 'below, without Docker',
  'kubernetes: Kubernetes': 'below, without Docker',
  'kubernetes: Kubernetes 2': 'below, without a cluster',
};

const installation = ['install: Install 2', 'install: The service'];
const runs: Record<string, readonly string[]> = {
  'on SQLite': [
    ...installation,
    ...['proxy-and-tls: On the same machine', 'proxy-and-tls: On the same machine 2', 'proxy-and-tls: A second core'],
    ...['secrets: Secrets', 'backup-and-restore: Backup and restore', 'backup-and-restore: Backup and restore 2'],
    ...['backup-and-restore: On another machine', 'backup-and-restore: Restore', 'backup-and-restore: Restore 2'],
    ...['upgrade-and-rollback: Upgrade and rollback', 'upgrade-and-rollback: Rollback', 'upgrade-and-rollback: Rollback 2'],
    ...['upgrade-and-rollback: From a checkout to the package', 'watch: Check', 'watch: Monitoring'],
    ...['proxy-and-tls: TLS without a proxy', 'install: Uninstall'],
  ],
  'on PostgreSQL': [
    ...[...installation, 'postgresql: PostgreSQL', 'backup-and-restore: Backup and restore', 'backup-and-restore: Restore'],
    ...['backup-and-restore: Restore 2', 'pgbouncer: PgBouncer', 'watch: Check', 'install: Uninstall'],
  ],
  'on PostgreSQL with two roles and its Unix socket': [
    ...[...installation, 'postgresql: Two roles', 'postgresql: PostgreSQL 2', 'postgresql: PostgreSQL'],
    ...['backup-and-restore: Backup and restore', 'watch: Check'],
  ],
};

describe('the pages about operations', () => {
  it('have at most 6,000 words', () => {
    expect(pages.flatMap((page) => read(page).match(/\S+/g) ?? []).length).to.be.at.most(6_000);
  });

  it('have no command that no test runs', () => {
    const tested = [...Object.values(runs).flat(), ...Object.keys(elsewhere)];
    expect(blocks.map(({ id }) => id).toSorted()).to.deep.equal([...new Set(tested)].toSorted());
  });

  for (const [where, ids] of Object.entries(runs)) {
    describe(`${where} (needs root and systemd)`, function () {
      this.timeout(300_000);
      // Each block builds on those before it.
      this.bail(true);
      let machine: ClonedMachine | undefined;
      before(async function () {
        const missing = programs.find((program) => spawnSync('which', [program]).status !== 0);
        if (missing !== undefined) skip(this, `${missing} isn't installed`);
        machine = await cloneMachine(this);
        const folder = await packages();
        // The machine's root user runs the page's commands at home.
        for (const name of [`callkey-core-${version}.tgz`, 'callkey-core-0.2.0.tgz']) machine.copy(join(folder, name), `/root/${name}`);
        for (const name of Object.keys(standIns)) machine.copy(join(folder, name), `/usr/local/bin/${name}`);
      });
      after(() => machine?.stop());

      for (const id of ids) {
        it(`have commands that can be run twice under “${id}”`, async () => {
          const { text = '' } = blocks.find((block) => block.id === id) ?? {};
          const run = async (script: string) => {
            // A strict umask is common on servers.
            const { code, output } = (await machine?.run(`set -eu -o pipefail\numask 077\n${script}`)) ?? { code: 1, output: '' };
            const why = code === 0 ? '' : (await machine?.run('journalctl --no-pager --lines=10 --output=cat'))?.output;
            expect(code, `${script}\n${output}\n${why}`).to.equal(0);
            return output;
          };
          if (preparations[id] !== undefined) await run(preparations[id]);
          // The next backup's name has another second.
          const commands = text.includes('backup') ? `${text}\nsleep 1` : text;
          for (const _ of [1, 2]) await run(commands);
          for (const [script, output] of results[id] ?? []) expect(await run(script), script).to.match(output);
        });
      }
    });
  }
});

const find = (id: string) => blocks.find((block) => block.id === id)?.text ?? '';

describe("the pages' commands that set variables", () => {
  for (const [id, name] of [
    ['proxy-and-tls: On the same machine', 'environment'],
    ['proxy-and-tls: TLS without a proxy', 'environment'],
    ['proxy-and-tls: A second core', 'environment-2'],
  ] as const)
    it(`keep the last line of a file without a line break at its end (${id})`, () => {
      const folder = freshDirectory();
      writeFileSync(join(folder, 'environment'), 'PORT=8090\nOIDC_NAME=Ada');
      const lines = find(id)
        .split('\n')
        .filter((line) => /\/etc\/callkey\/environment/.test(line) && !line.includes('callkey.service'));
      const script = lines.join('\n').replaceAll('/etc/callkey', folder);
      for (const _ of [1, 2]) execFileSync('sh', ['-euc', script]);
      const [port, oidc, ...added] = readFileSync(join(folder, name), 'utf8').match(/^.+$/gm) ?? [];
      expect([port, oidc, added.length]).to.deep.equal(['PORT=8090', 'OIDC_NAME=Ada', 2]);
    });
});

describe("the pages' commands that replace the database", () => {
  for (const id of ['backup-and-restore: Restore', 'upgrade-and-rollback: Rollback'])
    it(`stop nothing if there's no backup (${id})`, () => {
      const folder = freshDirectory();
      const standIn = `for program in systemctl callkey-service npm; do eval "$program() { echo $program \\"\\$*\\"; }"; done`;
      const script = find(id).replaceAll('/var/backups/callkey', folder);
      const { stdout } = spawnSync('bash', ['-c', `${standIn}\n${script}`], { encoding: 'utf8' });
      expect(stdout).to.equal('');
    });
});

describe('the pages about containers', () => {
  const deploy = (name: string) => readFileSync(join(root, 'core', 'deploy', name), 'utf8');

  /** Runs a script twice, with stand-ins for programs that need a server. @returns the commands that it gave them */
  function run(script: string, etc: string): string[] {
    const log = join(etc, 'log');
    const standIn = `for program in docker kubectl; do eval "$program() { echo $program \\"\\$*\\" >> ${log}; [ -t 0 ] || cat > /dev/null; }"; done`;
    const text = script.replaceAll('/etc/callkey', `${etc}/callkey`);
    for (const _ of [1, 2])
      execFileSync('bash', ['-euc', `umask 077\n${standIn}\n${text}`], { stdio: ['ignore', 'ignore', 'inherit'], cwd: root });
    return readFileSync(log, 'utf8').split('\n').slice(0, -1);
  }

  it('give the container secrets that it can read, and keep them when run again', () => {
    const etc = freshDirectory();
    const first = () => readFileSync(join(etc, 'callkey', 'session-secrets'), 'utf8');
    const commands = run(find('install: In a container'), etc);
    const before = first();
    run(find('install: In a container'), etc);
    expect(first()).to.equal(before);
    expect(statSync(join(etc, 'callkey')).mode & 0o777).to.equal(0o700);
    const files = [...deploy('compose.yaml').matchAll(/^ {4}file: \/etc\/callkey\/(.*)$/gm)].map(([, name = '']) => name);
    expect(files).to.have.length(4);
    for (const name of files) expect(statSync(join(etc, 'callkey', name)).mode & 0o777, name).to.equal(0o644);
    for (const command of commands) expect(command).to.match(/^docker compose --file core\/deploy\/compose\.yaml /);
  });

  it("keep a service's address of its database on the same machine", () => {
    const etc = freshDirectory();
    const file = join(etc, 'callkey', 'database-url');
    mkdirSync(join(etc, 'callkey'));
    writeFileSync(file, 'postgres://callkey@127.0.0.1/callkey\n');
    run(find('install: In a container'), etc);
    expect(readFileSync(file, 'utf8')).to.equal('postgres://callkey@127.0.0.1/callkey\n');
  });

  it("name the manifest's secrets, deployment and image, whose variables are valid", () => {
    const etc = freshDirectory();
    const commands = run(`mkdir -p /etc/callkey\n${find('kubernetes: Kubernetes')}${find('kubernetes: Kubernetes 2')}`, etc);
    const manifest = deploy('kubernetes.yaml');
    const variables = [...manifest.matchAll(/\{ name: ([A-Z_]+), value: (.*) \}/g)].map(([, name = '', value = '']) => [
      name,
      value.replaceAll("'", ''),
    ]);
    const folder = freshDirectory();
    writeFileSync(join(folder, 'database-url'), 'postgres://callkey@postgres/callkey\n');
    writeFileSync(join(folder, 'session-secrets'), `${'x'.repeat(32)}\n`);
    const mounted = variables.map(([name, value = '']) => [name, value.replace('/run/secrets/callkey', folder)]);
    const config = readConfig({ HOST: '0.0.0.0', DATABASE_URL: 'sqlite:/x', ...Object.fromEntries(mounted) });
    expect(config).to.deep.include({ port: 8080, drainDelay: 5, management: { host: '0.0.0.0', port: 8081, names: [] } });
    expect(config.database.kind).to.equal('postgres');
    for (const name of ['database-url', 'session-secrets']) expect(commands.join('\n')).to.contain(`--from-file=${etc}/callkey/${name} `);
    const [, image = 'none'] = /image: (\S+)/.exec(manifest) ?? [];
    expect(commands).to.include(`docker push ${image}`);
    expect(manifest).to.contain('containerPort: 8080').and.contain('containerPort: 8081').and.contain('secretName: callkey');
    expect(deploy('Dockerfile')).to.contain('USER 1000:1000');
  });
});

let packed: Promise<string> | undefined;

/** Builds the package and a later release of it, and the programs that stand in for others. @returns their folder */
function packages(): Promise<string> {
  packed ??= (async () => {
    await buildWebConsole();
    const folder = freshDirectory();
    execFileSync(process.execPath, [join(root, 'scripts', 'pack-core.ts'), folder], { stdio: 'ignore' });
    execFileSync('tar', ['--extract', '--file', join(folder, `callkey-core-${version}.tgz`), '--directory', folder]);
    const json = join(folder, 'package', 'package.json');
    writeFileSync(json, readFileSync(json, 'utf8').replace(`"version": "${version}"`, '"version": "0.2.0"'));
    execFileSync('tar', ['--create', '--gzip', '--file', join(folder, 'callkey-core-0.2.0.tgz'), '--directory', folder, 'package']);
    for (const [name, script] of Object.entries(standIns)) {
      writeFileSync(join(folder, name), script);
      chmodSync(join(folder, name), 0o755);
    }
    return folder;
  })();
  return packed;
}
