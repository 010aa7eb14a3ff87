import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../scripts/support/postgres.ts';
import { atTheEnd } from './clean-up.ts';
import { freshDirectory } from './databases.ts';

/** The ports of the two cores, each on its own loopback address. */
type CorePorts = { port: number; managementPort: number };

type Kind = {
  file: string;
  /** Returns the rest of a machine's configuration, which includes the file from core/deploy. */
  around(snippet: string, directory: string): string;
  command(file: string): [string, ...string[]];
};

const temporaryPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`).join(' ');

const kinds = {
  nginx: {
    file: 'nginx.conf',
    around: (snippet) =>
      `daemon off; worker_processes 2; pid nginx.pid; error_log stderr; events {} http { access_log off; ${temporaryPaths}\n${snippet}\n}`,
    command: (file) => ['nginx', '-e', 'stderr', '-p', join(file, '..'), '-c', file],
  },
  haproxy: {
    file: 'haproxy.cfg',
    around: (snippet) => snippet,
    command: (file) => ['haproxy', '-db', '-f', file],
  },
  caddy: {
    file: 'Caddyfile',
    around: (snippet, directory) =>
      snippet
        .replace(/^\{$/m, `{\nadmin off\nauto_https disable_redirects\nstorage file_system ${directory}`)
        .replace('callkey.example.com', 'https://localhost:443'),
    command: (file) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', file],
  },
} satisfies Record<string, Kind>;

type ProxyKind = keyof typeof kinds;
export const proxyKinds: readonly ProxyKind[] = ['nginx', 'haproxy', 'caddy'];

const running = new Set<ChildProcess>();
atTheEnd(() => {
  for (const child of running) child.kill('SIGKILL');
});

export function hasProxy(kind: ProxyKind): boolean {
  return spawnSync(kind, [kind === 'caddy' ? 'version' : '-v']).error === undefined;
}

/** Starts this proxy with its configuration from core/deploy, but with other ports and a certificate. */
export async function startProxy(kind: ProxyKind, ports: CorePorts, certificate: { TLS_CERT_FILE: string; TLS_KEY_FILE: string }) {
  const { file, around, command }: Kind = kinds[kind];
  const directory = freshDirectory();
  const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key } = certificate;
  const both = join(directory, 'both.pem');
  writeFileSync(both, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'));
  const port = await freePort();
  const shipped = readFileSync(fileURLToPath(new URL(`../../core/deploy/${file}`, import.meta.url)), 'utf8');
  const configured = around(shipped, directory)
    .replaceAll('/etc/ssl/callkey/cert-and-key.pem', both)
    .replaceAll('/etc/ssl/callkey/cert.pem', cert)
    .replaceAll('/etc/ssl/callkey/key.pem', key)
    .replaceAll(/\b443\b/g, String(port))
    .replaceAll(/\b8080\b/g, String(ports.port))
    .replaceAll(/\b8081\b/g, String(ports.managementPort));
  const configuration = join(directory, file);
  writeFileSync(configuration, configured);
  const [program, ...args] = command(configuration);
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env['PATH'], HOME: directory } });
  running.add(child);
  const stderrLines: string[] = [];
  child.stderr.on('data', (chunk) => stderrLines.push(String(chunk)));
  const ended = once(child, 'exit').finally(() => running.delete(child));
  return {
    url: `https://localhost:${port}`,
    /** All of its output on standard error. */
    stderrLines,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
