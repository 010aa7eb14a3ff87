import { readFileSync } from 'node:fs';
import proxyAddress from 'proxy-addr';
import { z } from 'zod';
import { type DatabaseLocation, parseDatabaseUrl } from './storage/database.ts';

/** All that the environment says, checked. */
export type Config = Readonly<{
  host: string;
  port: number;
  management: Readonly<{ host: string; port: number }> | null;
  tls: Readonly<{ cert: Buffer; key: Buffer }> | null;
  database: DatabaseLocation;
  /** Newest first. Null where they are to be kept beside the SQLite file. */
  sessionSecrets: readonly string[] | null;
  trustedProxies: readonly string[];
  logLevel: LogLevel;
}>;

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** A wrong value in the environment, in one line that names the variable. */
export class ConfigError extends Error {
  constructor(variable: string, message: string) {
    super(`${variable}: ${message}`);
    this.name = 'ConfigError';
  }
}

const port = (ifUnset: number) =>
  z
    .string()
    .default(String(ifUnset))
    .refine((text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535, { error: 'give a port from 0 to 65535 (0 picks a free one)' })
    .transform(Number);

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

const databaseUrl = z
  .string()
  .default('sqlite:./data/callkey.db')
  .transform((url, context) => {
    const location = parseDatabaseUrl(url);
    if (location) return location;
    context.addIssue({ code: 'custom', message: 'give sqlite: and the path of a file, or postgres://user:password@host/database' });
    return z.NEVER;
  });

const schema = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: port(8080),
  MANAGEMENT_HOST: z.string().default('127.0.0.1'),
  MANAGEMENT_PORT: z.union([z.literal('off'), port(8081)], { error: 'give a port from 0 to 65535, or off' }),
  TLS_CERT_FILE: z.string().optional(),
  TLS_KEY_FILE: z.string().optional(),
  DATABASE_URL: databaseUrl,
  SESSION_SECRETS: list
    .refine((secrets) => secrets.every((secret) => secret.length >= secretLength), {
      error: `give secrets of at least ${secretLength} characters each, separated by commas, the newest first`,
    })
    .transform((secrets) => (secrets.length === 0 ? null : secrets)),
  TRUSTED_PROXIES: list.refine(areAddresses, { error: 'give IP addresses or CIDR ranges, separated by commas' }),
  LOG_LEVEL: z.enum(logLevels, { error: `give one of ${logLevels.join(', ')}` }).default('info'),
});

/**
 * @param environment such as process.env; a variable set to nothing counts as unset
 * @throws ConfigError
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const env = parse(schema, environment);
  if (env.DATABASE_URL.kind === 'postgres' && !env.SESSION_SECRETS) {
    throw new ConfigError('SESSION_SECRETS', `is needed with PostgreSQL: give a secret of at least ${secretLength} characters`);
  }
  return Object.freeze({
    host: env.HOST,
    port: env.PORT,
    management: env.MANAGEMENT_PORT === 'off' ? null : { host: env.MANAGEMENT_HOST, port: env.MANAGEMENT_PORT },
    tls: readTls(env.TLS_CERT_FILE, env.TLS_KEY_FILE),
    database: env.DATABASE_URL,
    sessionSecrets: env.SESSION_SECRETS,
    trustedProxies: env.TRUSTED_PROXIES,
    logLevel: env.LOG_LEVEL,
  });
}

/** The database alone, for tools that serve nothing. @throws ConfigError */
export function readDatabaseLocation(environment: Readonly<Record<string, string | undefined>>): DatabaseLocation {
  return parse(z.object({ DATABASE_URL: databaseUrl }), environment).DATABASE_URL;
}

function parse<Schema extends z.ZodType>(schema: Schema, environment: Readonly<Record<string, string | undefined>>): z.output<Schema> {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = schema.safeParse(set);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ConfigError(String(issue?.path[0] ?? 'environment'), issue?.message ?? 'is wrong');
}

function readTls(certFile: string | undefined, keyFile: string | undefined): Config['tls'] {
  if (certFile === undefined && keyFile === undefined) return null;
  if (certFile === undefined) throw new ConfigError('TLS_CERT_FILE', 'is needed where TLS_KEY_FILE is set');
  if (keyFile === undefined) throw new ConfigError('TLS_KEY_FILE', 'is needed where TLS_CERT_FILE is set');
  return { cert: readPem('TLS_CERT_FILE', certFile), key: readPem('TLS_KEY_FILE', keyFile) };
}

function readPem(variable: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigError(variable, `cannot be read (${error instanceof Error ? error.message : String(error)})`);
  }
}

function areAddresses(addresses: string[]): boolean {
  try {
    proxyAddress.compile(addresses);
    return true;
  } catch {
    return false;
  }
}
