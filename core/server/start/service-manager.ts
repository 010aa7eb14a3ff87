import { spawn } from 'node:child_process';
import type { Logger } from 'pino';

/**
 * Tells systemd that a core is ready or stopping, if its unit has `Type=notify`. This uses systemd's own program, because systemd listens
 * on a Unix datagram socket, which Node.js doesn't support.
 */
export function notifyServiceManager(state: 'READY' | 'STOPPING', log: Logger): void {
  const { NOTIFY_SOCKET, PATH = '' } = process.env;
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === '') return;
  // The state is passed as an argument, because releases before 253 don't have an option for stopping. The environment isn't passed on,
  // because it may contain secrets.
  const child = spawn('systemd-notify', [`${state}=1`], { env: { NOTIFY_SOCKET, PATH }, stdio: 'ignore' });
  child.once('error', (err) => log.warn({ err }, "couldn't run systemd-notify"));
  child.once('exit', (code) => {
    if (code !== 0) log.warn({ code }, 'systemd-notify failed');
  });
}
