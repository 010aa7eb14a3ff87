import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { Problem } from '../../domain/problem.ts';
import type { Lane } from '../../storage/engine/database.ts';
import { toProblem } from '../../storage/engine/errors.ts';
import { parseAddresses } from '../../storage/engine/postgres/postgres-address.ts';
import { ownTables } from '../../storage/engine/tables.ts';

/** A running PostgreSQL program. `messages` returns what it wrote to standard error. */
type PostgresTool = { name: string; child: ChildProcessWithoutNullStreams; messages: () => string };

/** Starts a PostgreSQL program. Passes the address in the environment, because `ps` shows arguments to every user. */
export function startPostgresTool(url: string, name: string, args: readonly string[]): PostgresTool {
  const child = spawn(name, ['--no-password', ...args], { env: toEnvironment(url, process.env) });
  let messages = '';
  child.stderr.setEncoding('utf8').on('data', (message: string) => {
    messages += message;
  });
  // Writing fails if the tool has exited. Ignore that error, because `waitForTool` reports why the tool exited.
  child.stdin.on('error', () => undefined);
  return { name, child, messages: () => messages };
}

/** Thrown if a tool fails. It has a code, because otherwise a message such as "lock timeout" would be mistaken for a lost connection. */
class ToolFailed extends Error {
  override name = 'ToolFailed';
  code = 'TOOL_FAILED';
}

/** What to do about some of the tools' errors. */
const remedies: readonly (readonly [error: RegExp, remedy: string])[] = [
  [/must be owner of/, 'Restore as the role that owns the tables: of two roles, the one in owner-url.'],
  [/ERROR: +role ".*" does not exist/, 'The backup grants rights to this role. Create it, then restore again.'],
  [
    /root certificate file "system" does not exist|certificate verify failed/,
    "PostgreSQL's programs don't read NODE_EXTRA_CA_CERTS. Set sslrootcert in DATABASE_URL to the file with the authority's certificate.",
  ],
];

/** @throws ToolFailed if the tool isn't installed or fails */
export async function waitForTool({ name, child, messages }: PostgresTool): Promise<void> {
  const [code] = await once(child, 'close').catch(() => {
    throw new ToolFailed(`${name} isn't installed on this machine. Install the PostgreSQL client tools.`);
  });
  if (code === 0) return;
  const error = extractError(messages());
  const [, remedy] = remedies.find(([pattern]) => pattern.test(error)) ?? [];
  throw new ToolFailed(`${name} failed: ${error}${remedy === undefined ? '' : `. ${remedy}`}`);
}

/** Waits for a tool, and returns what it has written to standard output. @throws ToolFailed */
export async function readTool(tool: PostgresTool): Promise<string> {
  const [, output] = await Promise.all([waitForTool(tool), text(tool.child.stdout)]);
  return output;
}

/**
 * Makes sure that PostgreSQL's programs reach the same database as this process. Otherwise, they could copy or overwrite another one, for
 * example if the address names several servers.
 *
 * @throws Problem `conflict` if they don't
 */
export async function requireSameServer(database: Lane, url: string): Promise<void> {
  const identity = `SELECT concat_ws('/', system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database())) AS id
    FROM pg_control_system()`;
  const [row] = await database.query<{ id: string }>(identity).catch((error: unknown) => {
    throw toProblem(error);
  });
  const id = await readTool(startPostgresTool(url, 'psql', ['--no-psqlrc', '--tuples-only', '--no-align', `--command=${identity}`]));
  if (row === undefined || id.trim() !== row.id)
    throw new Problem(
      'conflict',
      "PostgreSQL's programs and the core reach different databases with DATABASE_URL. Check its hosts, and which psql this user runs.",
    );
}

export async function ownSchema(database: Lane): Promise<string> {
  const [row] = await database.query<{ schema: string | null }>('SELECT current_schema() AS schema');
  if (!row?.schema) throw new Problem('conflict', 'None of the schemas in search_path exists. Create one, or fix search_path.');
  return row.schema;
}

/** The names of Callkey's tables, for a statement. */
export const ownTableList = ownTables.map((name) => `'${name}'`).join(', ');

/** Quotes a name, because PostgreSQL's programs treat an unquoted name as a pattern. */
export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** Keeps only the error and the list of dependent objects. PostgreSQL also adds rows as context, and they may contain personal data. */
function extractError(messages: string): string {
  const lines = messages.trim().split('\n');
  const [error = lines[0] ?? ''] = lines.filter((line) => /error/i.test(line));
  const dependents = lines.filter((line) => / depends on table \S+$/.test(line)).map((line) => line.replace(/^DETAIL: +/, ''));
  return [error, ...dependents].join('; ');
}

/**
 * Returns the environment in which PostgreSQL's programs connect as the driver does. The driver also reads some of libpq's variables, so ask
 * it which values it uses, and remove the others, such as PGHOSTADDR and PGSERVICE, which only the programs read.
 */
function toEnvironment(url: string, inherited: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const clients = parseAddresses(url).map((address) => new pg.Client(address));
  const [client] = clients;
  const option = (name: string) => new URL(parseAddresses(url)[0] ?? '').searchParams.get(name) ?? '';
  const isUnverified = (option('sslmode') || inherited['PGSSLMODE']) === 'no-verify';
  const sslMode = !client?.ssl ? 'disable' : isUnverified ? 'require' : 'verify-full';
  const environment = {
    PGHOST: clients.map(({ host }) => host.replace(/^\[|\]$/g, '')).join(','),
    PGPORT: clients.map(({ port }) => port).join(','),
    PGUSER: client?.user,
    PGPASSWORD: client?.password,
    PGPASSFILE: inherited['PGPASSFILE'],
    PGDATABASE: client?.database,
    PGOPTIONS: option('options') || inherited['PGOPTIONS'],
    PGCLIENTENCODING: 'UTF8',
    PGSSLMODE: sslMode,
    // By default, Node trusts the certificate authorities that it ships with. The closest equivalent is the system's authorities, which
    // PostgreSQL's programs can use since version 16.
    PGSSLROOTCERT: option('sslrootcert') || (sslMode === 'verify-full' ? 'system' : ''),
    PGSSLCERT: option('sslcert'),
    PGSSLKEY: option('sslkey'),
    PGTARGETSESSIONATTRS: clients.length > 1 ? 'read-write' : '',
  };
  const others = Object.entries(inherited).filter(([name]) => !name.startsWith('PG'));
  return Object.fromEntries([...others, ...Object.entries(environment).filter(([, value]) => value)]);
}
