import { spawn } from 'node:child_process';
import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { instant } from '../../domain/instant.ts';
import type { Clock, Randomness } from '../../domain/ports.ts';

export const systemClock: Clock = { now: () => instant(Date.now()) };

export const systemRandomness: Randomness = {
  bytes: (size) => randomBytes(size),
  // UUIDv7 (RFC 9562 §5.7): a timestamp, followed by 74 random bits.
  id: () => randomUUIDv7(),
  idsAround: (at) => ({ lowestId: firstIdAt(at - idSkew), highestId: firstIdAt(at + idSkew) }),
};

/** In ms. More than two machines' clocks may differ. An ID is generated within milliseconds of the time that's stored with it. */
const idSkew = 600_000;

function firstIdAt(ms: number): string {
  const time = Math.max(0, ms).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}

/** Returns how many files and connections this process has open, and may have open; null if there's no limit, or it isn't known. */
export function countOpenFiles(): { max: number; open: number } | null {
  if (process.platform !== 'linux') return null;
  const [, max] = /^Max open files +(\d+) /m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return max === undefined ? null : { max: Number(max), open: readdirSync('/proc/self/fd').length };
}

/** Tells systemd (`Type=notify`) that a core is ready or stopping, with its own program: Node.js has no Unix datagram sockets. */
export function notifyServiceManager(state: 'READY' | 'STOPPING', log: Logger): void {
  const { NOTIFY_SOCKET, PATH = '' } = process.env;
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === '') return;
  // Pass the state as an argument, because releases before 253 have no option for stopping. Don't pass on secrets in the environment.
  const child = spawn('systemd-notify', [`${state}=1`], { env: { NOTIFY_SOCKET, PATH }, stdio: 'ignore' });
  child.once('error', (err) => log.warn({ err }, "couldn't run systemd-notify"));
  child.once('exit', (code) => {
    if (code !== 0) log.warn({ code }, 'systemd-notify failed');
  });
}
