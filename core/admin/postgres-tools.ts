import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Problem } from '../domain/problem.ts';

/** One of PostgreSQL's own programs, and its messages on standard error. */
type PostgresTool = { name: string; child: ChildProcess; complaint: () => string };

/** The address goes through the environment, which `ps` does not show. */
export function startPostgresTool(url: string, name: string, args: readonly string[]): PostgresTool {
  const child = spawn(name, args, { env: { ...process.env, ...environmentOf(url) }, stdio: ['pipe', 'pipe', 'pipe'] });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  // A tool that has ended takes no more input: its exit code says why.
  child.stdin.on('error', () => undefined);
  return { name, child, complaint: () => complaint };
}

/** @throws Problem `unavailable` when the tool is not installed, or fails */
export async function ended({ name, child, complaint }: PostgresTool): Promise<void> {
  const [code] = await once(child, 'close').catch(() => {
    throw new Problem('unavailable', `PostgreSQL's own ${name} is not installed here. Install the PostgreSQL client tools.`);
  });
  if (code !== 0) throw new Problem('unavailable', `${name} failed: ${cause(complaint())}`);
}

/** The error alone: PostgreSQL adds rows, which can be personal data, as its context. */
function cause(complaint: string): string {
  const lines = complaint.trim().split('\n');
  return lines.find((line) => /error/i.test(line)) ?? lines[0] ?? '';
}

function environmentOf(url: string): Record<string, string> {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  const environment = {
    PGHOST: decodeURIComponent(hostname).replace(/^\[|\]$/g, ''),
    PGPORT: port || '5432',
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
    PGSSLMODE: searchParams.get('sslmode') ?? '',
  };
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
}
