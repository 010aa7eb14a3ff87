import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { Clock, Passwords, Randomness } from '../../core/domain/ports.ts';
import { type CutReason, connectionLimits } from '../../core/server/connections/connections.ts';
import { type Listener, listen } from '../../core/server/connections/listener.ts';
import { type Core, startCore } from '../../core/server/core.ts';
import type { IdentityProviderLimits } from '../../core/server/openid-connect.ts';
import { readConfig, readTls } from '../../core/server/start/config.ts';
import { createLog } from '../../core/server/start/log.ts';
import { systemClock, systemRandomness } from '../../core/server/start/system.ts';
import { type ServerProcess, startServerProcess } from '../../scripts/support/server-process.ts';
import { selfSignedCertificate } from './certificate.ts';
import { testRandomness } from './clock.ts';
import { bareEnvironment, type Ended, spawnScript, testSecret } from './commands.ts';
import { type DatabaseKind, freshDirectory } from './databases.ts';
import { cheapPasswords } from './ports.ts';
import { addTenants, createKey, type DirectAccess, databaseWithTenants, openDirect, signIn, type Tenants } from './tenants.ts';
import { until } from './until.ts';

const toEnvironment = (databaseUrl: string) => ({
  DATABASE_URL: databaseUrl,
  SESSION_SECRETS: testSecret,
  PORT: '0',
  MANAGEMENT_PORT: '0',
  LOG_LEVEL: 'trace',
});

export type LogLine = Readonly<Record<string, unknown>>;
export type RunningCore = Core & { log: LogLine[] };

export type CoreOptions = {
  clock?: Clock | undefined;
  environment?: Record<string, string>;
  passwords?: Passwords;
  randomness?: Randomness;
  identityProvider?: IdentityProviderLimits;
};

/** @returns a stream for a log, and the lines that were written to it */
export function recordLog(): { log: LogLine[]; lines: Writable } {
  const log: LogLine[] = [];
  const lines = new Writable({
    write(chunk, _encoding, done) {
      for (const line of String(chunk).split('\n')) if (line !== '') log.push(JSON.parse(line));
      done();
    },
  });
  return { log, lines };
}

/** Returns how often a core has done its hourly work. It logs that only if there are audit events. */
export const countSweeps = ({ log }: Pick<RunningCore, 'log'>): number => log.filter(({ msg }) => msg === 'audit events sealed').length;

/** Starts a whole core within the test's process, with a clock that the test can move. */
export async function startCoreHere(
  databaseUrl: string,
  {
    clock = systemClock,
    environment = {},
    passwords = cheapPasswords(),
    // The test's IDs contain the machine's time. With a test's own clock, the core must not conclude from an ID when it was created.
    randomness = clock === systemClock ? { ...systemRandomness, id: testRandomness.id } : testRandomness,
    identityProvider = {},
  }: CoreOptions = {},
): Promise<RunningCore> {
  const config = readConfig({ ...toEnvironment(databaseUrl), ...environment });
  const { log, lines } = recordLog();
  const core = await startCore(config, () => config.sessionSecrets ?? [], {
    log: createLog(config.logLevel, lines),
    clock,
    randomness,
    passwords,
    identityProvider,
  });
  // Otherwise, the first sweep may come when the test has moved its clock, and end sessions that have expired then, or begin in the future.
  if (clock !== systemClock) await until(() => countSweeps({ log }) > 0);
  return { ...core, log };
}

export type CoreProcess = ServerProcess;

const root = new URL('../../', import.meta.url);
const { scripts }: { scripts: { start: string } } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
/** The Node.js options of `npm start`. */
const startArgs = scripts.start.split(' ').slice(1, -1);
export const main = fileURLToPath(new URL('core/main.ts', root));

/** Starts the same program as `npm start`, in a separate process. */
export function spawnCore(databaseUrl: string, environment: Record<string, string> = {}, directory?: string): Promise<CoreProcess> {
  const env = { ...bareEnvironment, ...toEnvironment(databaseUrl), LOG_LEVEL: 'info', ...environment };
  return startServerProcess([...startArgs, main], env, directory);
}

/** A core with two partners and their users. */
export type CoreHarness = {
  /** Its DATABASE_URL. */
  database: string;
  core: RunningCore;
  direct: DirectAccess;
  tenants: Tenants;
  close(): Promise<void>;
};

/** Starts a core within the test's process, on a separate database that has the tenants. */
export async function openCore({ kind = 'sqlite', ...options }: { kind?: DatabaseKind } & CoreOptions = {}): Promise<CoreHarness> {
  const { database, tenants } = await databaseWithTenants(kind);
  const core = await startCoreHere(database, options);
  const direct = await openDirect(database, options.clock).catch(async (error: unknown) => {
    await core.close();
    throw error;
  });
  return {
    database,
    core,
    direct,
    tenants,
    async close() {
      await direct.close();
      await core.close();
    },
  };
}

export type Started = { request: IncomingMessage; response: ServerResponse };

/** The certificate of all listeners that `open` opens. */
let certificate: ReturnType<typeof readTls> | undefined;

function readCertificate() {
  const { TLS_CERT_FILE, TLS_KEY_FILE } = selfSignedCertificate();
  return readTls(TLS_CERT_FILE, TLS_KEY_FILE);
}

/** Opens a listener whose requests wait until a test responds to them, and which records what happens to its connections. */
export async function open({ isSecure = false, limits = {}, proxy = '' } = {}, handler?: RequestListener) {
  const started: Started[] = [];
  const cuts: `${CutReason} ${string}`[] = [];
  if (isSecure) certificate ??= readCertificate();
  const listener = await listen(
    handler ?? ((request, response) => void started.push({ request, response })),
    { name: 'public', host: '0.0.0.0', port: 0 },
    {
      tls: (isSecure && certificate) || null,
      isProxy: (address) => address === proxy,
      onCut: (reason, address) => cuts.push(`${reason} ${address}`),
      limits: { ...connectionLimits, ...limits },
    },
  );
  listeners.push(listener);
  return { listener, started, cuts };
}

const listeners: Listener[] = [];

/** Closes all listeners that `open` has opened. */
export function abortListeners(): void {
  for (const listener of listeners.splice(0)) listener.abort();
}

/** Opens a connection. Its client reads everything that it receives. */
export async function client(listener: Listener, localAddress = '127.0.0.1') {
  const { protocol, port } = new URL(listener.url);
  const options = { host: '127.0.0.1', port: Number(port), localAddress };
  const socket: Socket = protocol === 'https:' ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options);
  const seen = { text: '', isClosed: false };
  socket.on('data', (chunk) => {
    seen.text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    seen.isClosed = true;
  });
  await once(socket, protocol === 'https:' ? 'secureConnect' : 'connect');
  return { socket, seen };
}

export const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
export const post = (path: string, body: string, more = '') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
export const statuses = (text: string) => text.match(/HTTP\/1\.1 \d+/g)?.map((line) => line.slice(9));

/** Starts a core that is expected to fail. @param user the user ID to run as, if the tests run as root */
export function failToStart(environment: Record<string, string>, user?: number): Promise<Ended> {
  const directory = freshDirectory();
  if (user !== undefined) chownSync(directory, user, user);
  const env = { PORT: '0', MANAGEMENT_PORT: '0', ...environment };
  // A busy machine may take this long to load the core.
  return spawnScript('core/main.ts', [], { env, directory, timeout: 45_000, ...(user !== undefined && { uid: user, gid: user }) });
}

/** Starts a core that may not get as far as listening. */
export function start(database: string) {
  const env = { ...bareEnvironment, ...toEnvironment(database), LOG_LEVEL: 'info' };
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: string[] = [];
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', (line) => lines.push(line));
  return { child, lines, ended: once(child, 'close') };
}

export async function connected(database: string): Promise<pg.Client> {
  const client = new pg.Client(database);
  await client.connect();
  return client;
}

/** Waits until a query returns rows, or no longer does. */
export const untilQuery = (client: pg.Client, sql: string, finds: boolean) =>
  until(async () => ((await client.query(sql)).rowCount ?? 0) > 0 === finds);

export const sessions = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'callkey'`;

/** Returns everything that a test needs to place calls. */
export async function withKey(database: string, { url }: { url: string }) {
  const tenants = await addTenants(database);
  const cookie = await signIn(url, 'ada@example.com');
  const { id: keyId, keyValue: key } = await createKey(url, cookie);
  return { tenants, cookie, keyId, key };
}

/** A clock for cores in separate processes that keeps running. @property setAhead sets it this many ms ahead of the machine's clock */
export function clockAhead(): { environment: Record<string, string>; setAhead(ms: number): void } {
  const file = join(freshDirectory(), 'ahead');
  const setAhead = (ms: number) => {
    // Renaming the file keeps cores from reading it half-written.
    writeFileSync(`${file}.new`, String(ms));
    renameSync(`${file}.new`, file);
  };
  setAhead(0);
  const environment = { NODE_OPTIONS: `--import=${new URL('read-clock-from-file.ts', import.meta.url)}`, CLOCK_FILE: file };
  return { environment, setAhead };
}
