import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { track } from '../../scripts/support/server-process.ts';
import { freshDirectory, memoryFolder } from './databases.ts';
import { skip } from './suites.ts';
import { until } from './until.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Makes a copy-on-write clone of this machine's files, without its network, and starts systemd in it. Mounts only what systemd needs. The
 * checkout's packages are in /opt/node_modules, which every user can read.
 */
const boot = String.raw`
set -eu
mount --make-rprivate /
mkdir upper work root
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/upper,workdir=$PWD/work" root
cd root
mkdir -p opt/node_modules old
mount --bind "$CHECKOUT/node_modules" opt/node_modules
mount -t proc proc proc
mount -t sysfs sysfs sys
for folder in run tmp dev root home; do mount -t tmpfs tmpfs $folder -o mode=1755; done
chmod 1777 tmp
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/pts dev/shm
mount -t devpts devpts dev/pts -o newinstance,ptmxmode=666
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for n in 0:stdin 1:stdout 2:stderr; do ln -s /proc/self/fd/\${n%:*} dev/\${n#*:}; done
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
else
  mount -t tmpfs tmpfs sys/fs/cgroup
  mkdir sys/fs/cgroup/systemd sys/fs/cgroup/unified
  mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
  mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
fi
rm -rf etc/systemd/system/*.wants
mkdir -p usr/local/bin
ln -sf /opt/node_modules/node/bin/node usr/local/bin/node
pivot_root . old
umount -l /old
# systemd passes credentials through mounts that propagate.
mount --make-rshared /
ip link set lo up
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=basic.target
`.replaceAll('\\$', '$');

/**
 * Moves the clone to its own cgroup, in each hierarchy in which systemd keeps a service's processes. Otherwise, two clones at the same time,
 * for example of two checkouts, would share and remove the cgroups of their services.
 */
const enter = `
hierarchies=$(cat /proc/self/cgroup)
while IFS=: read -r _ hierarchy path; do
  case $hierarchy in
    '') top=/sys/fs/cgroup; [ -e $top/cgroup.controllers ] || top=$top/unified ;;
    name=systemd) top=/sys/fs/cgroup/systemd ;;
    *) continue ;;
  esac
  mkdir "$top$path/$CGROUP"
  echo $$ > "$top$path/$CGROUP/cgroup.procs"
done <<< "$hierarchies"
exec unshare --mount --pid --fork --uts --ipc --net --cgroup --kill-child bash boot
`;

type Ran = { code: number; output: string };

export type ClonedMachine = {
  /** Runs a script in bash as root, in root's home folder. @returns the exit code, and standard output and standard error together */
  run(script: string): Promise<Ran>;
  /** Copies a file of this machine, with its mode. */
  copy(from: string, to: string): void;
  stop(): Promise<void>;
};

/** Boots a clone of this machine, in which a test may do anything. Skips the tests if that's impossible. */
export async function cloneMachine(context: Mocha.Context): Promise<ClonedMachine> {
  if (process.getuid?.() !== 0) skip(context, 'only root can clone the machine');
  if (spawnSync('/lib/systemd/systemd', ['--version']).status !== 0) skip(context, "systemd isn't installed");
  const memory = memoryFolder(2_000_000_000);
  const directory = memory === undefined ? freshDirectory() : join(memory, `callkey-test-machine-${process.pid}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'boot'), boot);
  const cgroup = `callkey-test-machine-${process.pid}`;
  const child = spawn('bash', ['-c', enter], {
    cwd: directory,
    env: { PATH: process.env['PATH'] ?? '', CHECKOUT: checkout, CGROUP: cgroup },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = track(child);
  const messages = text(child.stderr);
  const clone: ClonedMachine = {
    run: (input) => runIn(child, input),
    copy: (from, to) => copyFileSync(from, `/proc/${firstProcess(child)}/root${to}`),
    async stop() {
      const first = child.exitCode === null && child.signalCode === null ? firstProcess(child) : '';
      child.kill('SIGKILL');
      await ended;
      // By then, all processes of the clone have ended.
      if (first !== '') await until(() => !existsSync(`/proc/${first}`));
      spawnSync('find', ['/sys/fs/cgroup', '-depth', '-path', `*/${cgroup}*`, '-type', 'd', '-exec', 'rmdir', '{}', '+']);
      rmSync(directory, { recursive: true, force: true });
    },
  };
  const isRunning = async () => child.exitCode !== null || /running|degraded/.test((await clone.run('systemctl is-system-running')).output);
  await until(isRunning).catch(() => undefined);
  if (child.exitCode === null) return clone;
  await clone.stop();
  skip(context, `the machine can't be cloned here: ${(await messages).trim().split('\n').at(-1)}`);
}

/** Returns the ID of the clone's systemd; empty if it isn't running, because until then, that process still has this machine's files. */
function firstProcess({ pid = 0 }: ChildProcess): string {
  const id = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return id !== '' && readFileSync(`/proc/${id}/comm`, 'utf8') === 'systemd\n' ? id : '';
}

async function runIn(machine: ChildProcess, script: string): Promise<Ran> {
  const first = firstProcess(machine);
  if (first === '') return { code: 1, output: '' };
  const enter = ['--target', first, '--mount', '--pid', '--net', '--uts', '--ipc', '--cgroup'];
  const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', LANG: 'C.UTF-8' };
  const child = spawn('nsenter', [...enter, 'bash', '-c', `exec 2>&1\ncd /root\n${script}`], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return { code, output };
}
