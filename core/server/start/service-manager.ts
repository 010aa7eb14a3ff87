import { spawn } from 'node:child_process';
import type { Logger } from 'pino';

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
