import { createPrivateKey, X509Certificate } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { createSecureContext } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import proxyAddress from 'proxy-addr';
import { z } from 'zod';
import { isSigningSecret } from '#contract/calls/signature.ts';
import type { Pace } from '#contract/protection/dialing.ts';
import { isLoopback, readServerAddress } from '#contract/server-address.ts';
import { shellWord } from '#contract/text/shell.ts';
import { lineSchema } from '#contract/text/text.ts';
import type { RetentionDays } from '../../domain/ports.ts';
import { adminCommand } from '../../program.ts';
import { type DatabaseLocation, parseDatabaseUrl } from '../../storage/engine/database.ts';

/** Stops the start. The message is one line that names the variable. */
export class ConfigError extends Error {
  constructor(variable: string, message: string) {
    super(`${variable}: ${message}`);
    this.name = 'ConfigError';
  }
}

export type Config = ReturnType<typeof readConfig>;

/** Certificate and key in PEM format. */
export type Tls = Readonly<{ certFile: string; keyFile: string; cert: Buffer; key: Buffer }>;

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

const wholeNumber = (min: number, max: number, what = `a whole number from ${min} to ${max}`) =>
  z
    .string()
    .refine((text) => /^\d{1,7}$/.test(text) && Number(text) >= min && Number(text) <= max, { error: `must be ${what}` })
    .transform(Number);

const port = (ifUnset: number) => wholeNumber(0, 65_535, 'a port from 0 to 65535 (0 picks a free one)').default(ifUnset);

/** Accepts an IPv6 address in brackets, as in a URL, because otherwise it would be looked up as a name. */
const host = z
  .string()
  .transform((text) => (isIPv6(text.slice(1, -1)) ? text.replace(/^\[(.*)\]$/, '$1') : text))
  .default('127.0.0.1');

const list = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  );

const secretLength = 32;

const secrets = list
  .refine((secrets) => secrets.every((secret) => secret.length >= secretLength), {
    error: `must be secrets of at least ${secretLength} characters each, separated by commas, newest first`,
  })
  .transform((secrets) => (secrets.length === 0 ? null : secrets));

const generateSecret = `${adminCommand} dialer secret`;

const signingSecrets = list.refine((secrets) => secrets.every(isSigningSecret), {
  error: `must be secrets separated by commas, newest first, each whsec_ followed by 24 to 64 bytes in base64; to generate one, run: ${generateSecret}`,
});

const days = z
  .string()
  .refine((text) => text === 'off' || /^[1-9]\d{0,4}$/.test(text), { error: 'must be a number of days from 1 to 99999, or off' })
  .transform((text) => (text === 'off' ? null : Number(text)));

export const defaultRetention: RetentionDays = { contacts: 90, auditEvents: null };

const maxActiveKeys = wholeNumber(1, 1_000_000).default(1_000);

const defaultDatabase = 'sqlite:./data/callkey.db';

const databaseUrl = z
  .string()
  .default(defaultDatabase)
  .transform((url, context) => {
    try {
      return parseDatabaseUrl(url);
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : 'is invalid' });
      return z.NEVER;
    }
  });

/** Secrets are sent to these addresses, so they must use https or be on this machine. */
const address = z
  .string()
  .refine((text) => readServerAddress(text).ok, { error: 'must be an https URL, or an http URL on this machine, without a query' });

/** Browsers send cookies and origins in this form. */
function normalizeAddress(text: string): string {
  const read = readServerAddress(text);
  return read.ok ? read.address : text;
}

const nameSchema = lineSchema(40);

const schema = z.object({
  HOST: host,
  PORT: port(8080),
  DRAIN_DELAY: wholeNumber(0, 300, 'a whole number of seconds from 0 to 300').optional(),
  MANAGEMENT_HOST: host,
  MANAGEMENT_PORT: z.union([z.literal('off'), port(8081)], { error: 'must be a port from 0 to 65535, or off' }),
  MANAGEMENT_NAMES: list
    .refine((names) => names.every((name) => /^(\*\.)?[a-z\d_-]+(\.[a-z\d_-]+)*$/i.test(name)), {
      error: 'must be host names such as core.example.com or *.example.com, without ports, separated by commas',
    })
    .transform((names) => names.map((name) => name.toLowerCase())),
  TLS_CERT_FILE: z.string().optional(),
  TLS_KEY_FILE: z.string().optional(),
  DATABASE_URL: databaseUrl,
  SESSION_SECRETS: secrets,
  TRUSTED_PROXIES: list
    .refine(areAddresses, { error: 'must be IP addresses or CIDR ranges, separated by commas', abort: true })
    .refine((addresses) => !includeAll(addresses), {
      error: 'must not include all addresses, because then every client could pretend to have another address',
    }),
  WEB_CONSOLE: z.enum(['on', 'off'], { error: 'must be on or off' }).default('on'),
  DIALER: z.enum(['simulated', 'webhook', 'off'], { error: 'must be simulated, webhook or off' }).default('off'),
  DIALER_URL: z
    .string()
    .refine(isSafeUrl, { error: 'must be an https URL, or an http URL on this machine, without a username or password' })
    .optional(),
  DIALER_SECRETS: signingSecrets,
  DIALER_DEDUPLICATES: z.enum(['true', 'false'], { error: 'must be true or false' }).default('false'),
  DIALER_CONCURRENCY: wholeNumber(1, 1_000).default(10),
  DIALER_PER_SECOND: z
    .string()
    .refine((text) => /^\d{1,4}(\.\d{1,3})?$/.test(text) && Number(text) >= 0.1 && Number(text) <= 1_000, {
      error: 'must be a number from 0.1 to 1000',
    })
    .transform(Number)
    .optional(),
  DIALER_LIVE_CALLS: wholeNumber(1, 100_000).optional(),
  RETENTION_DAYS: days.default(defaultRetention.contacts),
  AUDIT_RETENTION_DAYS: days.default(defaultRetention.auditEvents),
  MAX_ACTIVE_KEYS_PER_USER: maxActiveKeys,
  PUBLIC_URL: address.transform(normalizeAddress).optional(),
  OIDC_ISSUER: address.optional(),
  OIDC_CLIENT_ID: z.string().optional(),
  OIDC_CLIENT_SECRET: z.string().optional(),
  OIDC_NAME: z
    .string()
    .default('single sign-on')
    .refine((text) => nameSchema.safeParse(text).success, { error: 'must be 1 to 40 characters, without control characters' }),
  OIDC_EMAIL: z.enum(['verified', 'trusted'], { error: 'must be verified or trusted' }).optional(),
  PASSWORD_SIGN_IN: z.enum(['on', 'off'], { error: 'must be on or off' }).default('on'),
  SECOND_FACTOR: z.enum(['optional', 'required'], { error: 'must be optional or required' }).default('optional'),
  LOG_LEVEL: z.enum(logLevels, { error: `must be one of ${logLevels.join(', ')}` }).default('info'),
});

/** @param environment such as process.env; a variable set to an empty string counts as unset @throws ConfigError */
export function readConfig(environment: Readonly<Record<string, string | undefined>>) {
  const env = parse(schema, environment);
  if (env.DATABASE_URL.kind === 'postgres' && !env.SESSION_SECRETS) {
    throw new ConfigError('SESSION_SECRETS', `is required with PostgreSQL: set it to a secret of at least ${secretLength} characters`);
  }
  if (env.PORT !== 0 && env.MANAGEMENT_PORT === env.PORT && overlap(env.HOST, env.MANAGEMENT_HOST))
    throw new ConfigError('MANAGEMENT_PORT', `must differ from PORT (${env.PORT}), because HOST and MANAGEMENT_HOST overlap`);
  return Object.freeze({
    host: env.HOST,
    port: env.PORT,
    /** How many seconds a draining core accepts requests, until load balancers notice. They can't reach loopback: there, it's 0. */
    drainDelay: env.DRAIN_DELAY ?? (isLoopback(env.HOST) ? 0 : 5),
    management:
      env.MANAGEMENT_PORT === 'off' ? null : { host: env.MANAGEMENT_HOST, port: env.MANAGEMENT_PORT, names: env.MANAGEMENT_NAMES },
    tls: toTls(env.TLS_CERT_FILE, env.TLS_KEY_FILE),
    database: env.DATABASE_URL,
    /** Newest first. If null, the core generates a secret and stores it next to the SQLite file. */
    sessionSecrets: env.SESSION_SECRETS,
    trustedProxies: env.TRUSTED_PROXIES,
    webConsole: env.WEB_CONSOLE === 'on',
    logLevel: env.LOG_LEVEL,
    dialer: toDialer(env),
    /** Newest first. Sign hand-offs and outcomes. With any dialer, outcomes of earlier hand-offs are accepted if there are secrets. */
    dialerSecrets: env.DIALER_SECRETS,
    retentionDays: { contacts: env.RETENTION_DAYS, auditEvents: env.AUDIT_RETENTION_DAYS },
    maxActiveKeys: env.MAX_ACTIVE_KEYS_PER_USER,
    /** The URL at which browsers reach this core, without a trailing slash; empty if it isn't set. */
    publicUrl: env.PUBLIC_URL ?? '',
    oidc: toOidc(env),
    passwordSignIn: env.PASSWORD_SIGN_IN === 'on',
    requiresSecondFactor: env.SECOND_FACTOR === 'required',
  });
}

/** Whether listeners on these hosts have an address in common. A listener on `::` also listens on IPv4. */
function overlap(one: string, other: string): boolean {
  const includes = (all: string, host: string) => all === '::' || (all === '0.0.0.0' && isIPv4(host));
  return one === other || includes(one, other) || includes(other, one);
}

function toDialer(env: z.output<typeof schema>) {
  const { DIALER: kind, DIALER_CONCURRENCY: concurrency, DIALER_PER_SECOND: perSecond = null, DIALER_LIVE_CALLS: liveCalls = null } = env;
  // The pace of all calls together; null for any.
  const pace: Pace | null = perSecond === null && liveCalls === null ? null : { perSecond, liveCalls };
  const handing = { concurrency, pace };
  if (kind === 'off') return { kind };
  if (kind === 'simulated') return { kind, ...handing };
  if (env.DIALER_URL === undefined) throw new ConfigError('DIALER_URL', 'is required with DIALER=webhook');
  if (env.DIALER_SECRETS.length === 0)
    throw new ConfigError('DIALER_SECRETS', `is required with DIALER=webhook. To generate one, run: ${generateSecret}`);
  return { kind, ...handing, url: env.DIALER_URL, deduplicates: env.DIALER_DEDUPLICATES === 'true' };
}

/** Whether a URL uses https or is on this machine. One of the two is required, because contact data is sent to the URL. */
function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  return username === '' && password === '' && (protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname)));
}

/** Reads the retention settings from `admin`'s own environment; undefined if they aren't set. @throws ConfigError */
export function readRetentionDays(environment: Readonly<Record<string, string | undefined>>): Partial<RetentionDays> {
  const env = parse(z.object({ RETENTION_DAYS: days.optional(), AUDIT_RETENTION_DAYS: days.optional() }), environment);
  const { RETENTION_DAYS: contacts, AUDIT_RETENTION_DAYS: auditEvents } = env;
  return { ...(contacts === undefined ? {} : { contacts }), ...(auditEvents === undefined ? {} : { auditEvents }) };
}

/** Reads only MAX_ACTIVE_KEYS_PER_USER, for `admin`. @throws ConfigError */
export function readMaxActiveKeys(environment: Readonly<Record<string, string | undefined>>): number {
  return parse(z.object({ MAX_ACTIVE_KEYS_PER_USER: maxActiveKeys }), environment).MAX_ACTIVE_KEYS_PER_USER;
}

/** Reads only DATABASE_URL, for `admin`. @throws ConfigError */
export function readDatabaseLocation(environment: Readonly<Record<string, string | undefined>>): DatabaseLocation {
  return parse(z.object({ DATABASE_URL: databaseUrl }), environment).DATABASE_URL;
}

/**
 * Starts a sentence with the admin command for the database in use, even if DATABASE_URL was set only for one command. The address of a
 * PostgreSQL server may contain a password, so it isn't repeated.
 */
export function suggestAdmin(database: DatabaseLocation, words: readonly string[], isWindows = process.platform === 'win32'): string {
  const command = [adminCommand, ...words.map((word) => shellWord(word, isWindows))].join(' ');
  if (isDeepStrictEqual(database, parseDatabaseUrl(defaultDatabase))) return `Run ${command}`;
  if (database.kind === 'postgres' || isWindows) return `With the same DATABASE_URL, run ${command}`;
  return `Run DATABASE_URL=${shellWord(`sqlite:${database.filename}`)} ${command}`;
}

/** Returns the address of this machine's management listener; null if it's off. @throws ConfigError */
export function readManagementAddress(environment: Readonly<Record<string, string | undefined>>): { host: string; port: number } | null {
  const { MANAGEMENT_HOST, MANAGEMENT_PORT } = schema.shape;
  const { MANAGEMENT_HOST: host, MANAGEMENT_PORT: port } = parse(z.object({ MANAGEMENT_HOST, MANAGEMENT_PORT }), environment);
  // A listener on all addresses also accepts connections on loopback.
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return port === 'off' ? null : { host: reachable, port };
}

function parse<Schema extends z.ZodObject>(schema: Schema, environment: Readonly<Record<string, string | undefined>>): z.output<Schema> {
  // Trim values, because files of variables may end their lines with CR, and a space at the end of a path would name another file.
  const trimmed = Object.entries(environment).map(([name, value]) => [name, value?.trim()] as const);
  const set = Object.fromEntries(trimmed.filter(([, value]) => value !== ''));
  // For a service called `management`, Kubernetes and Docker set MANAGEMENT_PORT to an address.
  if (/^(tcp|udp|sctp):\/\//.test(set['MANAGEMENT_PORT'] ?? '')) delete set['MANAGEMENT_PORT'];
  // Read only the files of the requested variables, because the user who runs `admin` may not be allowed to read the others.
  for (const name of secretVariables.filter((secret) => secret in schema.shape)) {
    const variable = `${name}_FILE`;
    const file = set[variable];
    if (file === undefined) continue;
    if (set[name] !== undefined) throw new ConfigError(variable, `set either this or ${name}, not both`);
    set[name] = readSecretFile(variable, file);
  }
  for (const name of Object.keys(schema.shape))
    if (/^(["']).*\1$|^[“‘`].*[”’`]$|\p{Cc}/su.test(set[name] ?? ''))
      throw new ConfigError(name, 'must not be in quotation marks or contain control characters');
  const parsed = schema.safeParse(set);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ConfigError(String(issue?.path[0] ?? 'environment'), issue?.message ?? 'is invalid');
}

/** Variables that can be read from a file, because service managers and containers pass secrets as files. */
const secretVariables = ['DATABASE_URL', 'SESSION_SECRETS', 'DIALER_SECRETS', 'OIDC_CLIENT_SECRET'];

function readSecretFile(variable: string, file: string): string {
  const text = readNamedFile(variable, file).toString().trim();
  if (text === '') throw new ConfigError(variable, 'the file is empty');
  return text;
}

function toTls(certFile: string | undefined, keyFile: string | undefined): Tls | null {
  if (certFile === undefined && keyFile === undefined) return null;
  if (certFile === undefined) throw new ConfigError('TLS_CERT_FILE', 'is required when TLS_KEY_FILE is set');
  if (keyFile === undefined) throw new ConfigError('TLS_KEY_FILE', 'is required when TLS_CERT_FILE is set');
  return readTls(certFile, keyFile);
}

/** @throws ConfigError */
export function readTls(certFile: string, keyFile: string): Tls {
  const cert = readNamedFile('TLS_CERT_FILE', certFile);
  const key = readNamedFile('TLS_KEY_FILE', keyFile);
  const certificate = parsePem('TLS_CERT_FILE', `${certFile} doesn't contain a certificate in PEM format`, () => new X509Certificate(cert));
  const privateKey = parsePem('TLS_KEY_FILE', `${keyFile} doesn't contain an unencrypted private key in PEM format`, () =>
    createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new ConfigError('TLS_KEY_FILE', `${keyFile} doesn't match the certificate in ${certFile}`);
  }
  parsePem('TLS_CERT_FILE', `couldn't use ${certFile} and its key`, () => createSecureContext({ cert, key }));
  return { certFile, keyFile, cert, key };
}

/** Parses a PEM file. The reason for an error comes from OpenSSL, and doesn't contain any part of the key. */
function parsePem<Parsed>(variable: string, message: string, parse: () => Parsed): Parsed {
  try {
    return parse();
  } catch (error) {
    throw new ConfigError(variable, `${message} (${error instanceof Error ? error.message : String(error)})`);
  }
}

/** In bytes. Without a maximum, a device such as `/dev/zero` would be read forever. */
const maxFileSize = 1_048_576;

function readNamedFile(variable: string, file: string): Buffer {
  try {
    const descriptor = openSync(file, 'r');
    try {
      const bytes = Buffer.alloc(maxFileSize + 1);
      for (let length = 0; length <= maxFileSize; ) {
        const read = readSync(descriptor, bytes, length, bytes.length - length, null);
        if (read === 0) return bytes.subarray(0, length);
        length += read;
      }
      throw new Error(`${file} is larger than 1 MiB`);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw new ConfigError(variable, `couldn't be read (${error instanceof Error ? error.message : String(error)})`);
  }
}

function areAddresses(addresses: string[]): boolean {
  // The library also reads 10 as 0.0.0.10, and 010.0.0.1 as 8.0.0.1.
  if (!addresses.every((address) => isIP(address.replace(/\/.*/, '')) !== 0)) return false;
  try {
    proxyAddress.compile(addresses.filter((address) => !isPrefixZero(address)));
    return true;
  } catch {
    return false;
  }
}

/** The library doesn't read this prefix. */
function isPrefixZero(address: string): boolean {
  return /\/0+$/.test(address);
}

/** A list that includes both the first and the last IPv4 address includes all of them, in whatever notation, such as ::ffff:0:0/96. */
function includeAll(addresses: string[]): boolean {
  if (addresses.some(isPrefixZero)) return true;
  const trusts = proxyAddress.compile(addresses);
  return trusts('0.0.0.0', 0) && trusts('255.255.255.255', 0);
}

export type OidcConfig = NonNullable<Config['oidc']>;

/** @returns null if no provider is configured @throws ConfigError */
function toOidc(env: z.output<typeof schema>) {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret, PUBLIC_URL: publicUrl } = env;
  if (issuer === undefined) {
    const variable = (['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_EMAIL'] as const).find((name) => env[name] !== undefined);
    if (variable) throw new ConfigError('OIDC_ISSUER', `is required when ${variable} is set`);
    if (env.PASSWORD_SIGN_IN === 'off')
      throw new ConfigError('PASSWORD_SIGN_IN', "can't be off without OIDC_ISSUER, because no one could sign in");
    return null;
  }
  if (clientId === undefined || clientSecret === undefined || publicUrl === undefined) {
    const missing = publicUrl === undefined ? 'PUBLIC_URL' : clientId === undefined ? 'OIDC_CLIENT_ID' : 'OIDC_CLIENT_SECRET';
    throw new ConfigError(missing, 'is required when OIDC_ISSUER is set');
  }
  // The provider sends the browser back to a page of the console.
  if (env.WEB_CONSOLE === 'off') throw new ConfigError('WEB_CONSOLE', 'must be on when OIDC_ISSUER is set');
  if (isForAllMicrosoftTenants(issuer)) throw new ConfigError('OIDC_ISSUER', 'must contain the ID of your own tenant');
  if (env.OIDC_EMAIL === 'trusted' && issuersForEveryone.includes(new URL(issuer).hostname)) {
    throw new ConfigError('OIDC_EMAIL', 'must be verified with this issuer, because anyone can get an account there');
  }
  return { issuer, clientId, clientSecret, publicUrl, name: nameSchema.parse(env.OIDC_NAME), email: env.OIDC_EMAIL ?? 'verified' };
}

/** Whether an Entra ID issuer is for all companies or private accounts, whose users can claim any email address (known as nOAuth). */
function isForAllMicrosoftTenants(issuer: string): boolean {
  const { hostname, pathname } = new URL(issuer);
  const isMicrosoft = /(^|\.)(microsoftonline\.(com|us)|windows\.net|chinacloudapi\.cn|partner\.microsoftonline\.cn)$/.test(hostname);
  return isMicrosoft && /^\/(common|organizations|consumers|9188040d-6c67-4c5b-b112-36a304b66dad)(\/|$)/i.test(pathname);
}

/** Issuers where anyone can create an account, or an organization with any addresses. */
const issuersForEveryone: readonly string[] = [
  ...['accounts.google.com', 'appleid.apple.com', 'gitlab.com', 'login.salesforce.com', 'slack.com'],
  ...['www.linkedin.com', 'api.login.yahoo.com', 'www.facebook.com', 'id.twitch.tv', 'discord.com'],
];
