import { appendFileSync, mkdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { redactKeyValues } from '#contract/key-value.ts';

type Details = Readonly<Record<string, string | number | boolean | undefined>>;

/** In bytes. One older file of this size is kept. */
const maxSize = 512 * 1024;

let path: string | null = null;
let last = '';

/** Starts a log in the app's folder. @returns the path of its file */
export function openLog(folder: string): string {
  path = join(folder, 'logs', 'console.log');
  return path;
}

/** Writes an event, unless it's the same as the last one. Pass nothing that a user has typed and no bodies, cookies or queries. */
export function log(event: string, details: Details = {}): void {
  const text = redactKeyValues(JSON.stringify({ event, ...details }));
  if (path === null || text === last) return;
  last = text;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > maxSize) renameSync(path, `${path}.1`);
    appendFileSync(path, `${new Date().toISOString()} ${text}\n`, { mode: 0o600 });
  } catch {
    // The disk may be full, which must not stop the app.
  }
}

export function readLog(lines: number): string {
  try {
    return path === null
      ? ''
      : readFileSync(path, 'utf8')
          .split('\n')
          .slice(-lines - 1)
          .join('\n');
  } catch {
    return '';
  }
}

/** Removes the query of a request's path and everything that identifies someone, such as an ID or a phone number. */
export function describePath(requestPath: string): string {
  return requestPath.replace(/\?.*$/s, '').replace(/\/[^/]*[\d%@+][^/]*/g, '/:id');
}
