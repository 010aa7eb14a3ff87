import { spawn } from 'node:child_process';
import type { Logger } from 'pino';

/**
 * Tells systemd that a core is ready, or stops, where its unit says `Type=notify`. Through systemd's own program: Node.js has no datagrams on
 * Unix sockets, over which systemd listens.
 */
export function notifyServiceManager(state: 'READY' | 'STOPPING', log: Logger): void {
  const { NOTIFY_SOCKET, PATH = '' } = process.env;
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === '') return;
  // As a variable: releases before 253 have no option for the end. Not the whole environment, which may have secrets.
  const child = spawn('systemd-notify', [`${state}=1`], { env: { NOTIFY_SOCKET, PATH }, stdio: 'ignore' });
  child.once('error', (err) => log.warn({ err }, "couldn't run systemd-notify"));
  child.once('exit', (code) => {
    if (code !== 0) log.warn({ code }, 'systemd-notify failed');
  });
}
