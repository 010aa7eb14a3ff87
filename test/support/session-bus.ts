import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { freshDirectory } from './databases.ts';
import { consoleEnvironment, watchOver } from './electron.ts';

const run = promisify(execFile);

/** Returns which of these programs isn't installed; undefined if all are. */
export function missingProgram(...names: readonly string[]): string | undefined {
  return names.find((name) => {
    try {
      execFileSync('which', [name], { stdio: 'ignore' });
      return false;
    } catch {
      return true;
    }
  });
}

/** The missing program that the tests need for a keyring; undefined if all are installed. */
export const missingKeyring = missingProgram('dbus-daemon', 'gnome-keyring-daemon', 'gdbus', 'xdotool');

/** A session bus of D-Bus with its own home folder. Pass its variables to everything that should use it. */
export type SessionBus = { env: Record<string, string>; close(): Promise<void> };

/** Starts a bus. @param services whether it can start the system's services, such as the prompt of a keyring */
export async function startBus(services: boolean): Promise<SessionBus> {
  const home = freshDirectory();
  const runtime = join(home, 'run');
  mkdirSync(runtime, { mode: 0o700 });
  const file = join(home, 'bus.conf');
  writeFileSync(
    file,
    `<busconfig><type>session</type><listen>unix:tmpdir=${runtime}</listen>${services ? '<standard_session_servicedirs/>' : ''}
    <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`,
  );
  const own = { HOME: home, XDG_DATA_HOME: join(home, 'data'), XDG_RUNTIME_DIR: runtime, XDG_CURRENT_DESKTOP: '', DESKTOP_SESSION: '' };
  const daemon = spawn('dbus-daemon', [`--config-file=${file}`, '--nofork', '--print-address'], {
    env: await consoleEnvironment(own),
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  watchOver(daemon);
  const [address] = await once(createInterface({ input: daemon.stdout }), 'line');
  return {
    env: await consoleEnvironment({ ...own, DBUS_SESSION_BUS_ADDRESS: String(address) }),
    async close() {
      daemon.kill();
      await once(daemon, 'exit');
    },
  };
}

const keyringPassword = 'open';

/** A bus with an unlocked keyring. */
export type Keyring = SessionBus & {
  lock(): Promise<unknown>;
  /** Answers the prompt for the password. */
  answerPrompt(answer: 'unlock' | 'dismiss'): Promise<void>;
};

export async function startKeyring(): Promise<Keyring> {
  const bus = await startBus(true);
  const { env } = bus;
  const daemon = spawn('gnome-keyring-daemon', ['--unlock', '--foreground', '--components=secrets'], {
    env,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watchOver(daemon);
  daemon.stdin.end(keyringPassword);
  await run('gdbus', ['wait', '--session', 'org.freedesktop.secrets'], { env });
  return {
    ...bus,
    lock: () => run('gdbus', [...call('org.freedesktop.Secret.Service.Lock'), `['/org/freedesktop/secrets/collection/login']`], { env }),
    async answerPrompt(answer) {
      await run('xdotool', ['search', '--sync', '--onlyvisible', '--name', 'Unlock'], { env });
      const keys = answer === 'unlock' ? ['type', keyringPassword] : ['key', 'Escape'];
      await run('xdotool', keys, { env });
      if (answer === 'unlock') await run('xdotool', ['key', 'Return'], { env });
    },
    async close() {
      daemon.kill();
      await once(daemon, 'exit');
      await bus.close();
    },
  };
}

const call = (method: string) => ['call', '--session', '-d', 'org.freedesktop.secrets', '-o', '/org/freedesktop/secrets', '-m', method];
