import {
  accessSync,
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { errorCode, Problem } from '../../../domain/problem.ts';
import { explainDatabaseError, UnsafeFileError } from '../errors.ts';

/** Creates the file, with access only for its owner, or checks that it exists. @throws Problem `not-found` or `unavailable` */
export function prepareFile(filename: string, ifMissing: 'make' | 'refuse'): void {
  if (ifMissing === 'make') makeFile(filename);
  else requireFile(filename);
}

function makeFile(filename: string): void {
  try {
    mkdirSync(dirname(filename), { recursive: true, mode: 0o700 });
    // Don't open an existing file, because closing it would drop this process's locks on it.
    if (statSync(filename, { throwIfNoEntry: false })?.isFile()) requireWritable(filename);
    else closeSync(openSync(filename, 'a', 0o600));
  } catch (error) {
    throw cannotOpenError(filename, error);
  }
}

/** Checks that SQLite can write to the file and to its folder, which contains the WAL. @throws Error of the file system */
export function requireWritable(filename: string): void {
  accessSync(filename, constants.R_OK | constants.W_OK);
  accessSync(dirname(filename), constants.W_OK);
}

/** Checks that the file exists. @throws Problem `not-found` or `unavailable` */
export function requireFile(filename: string): void {
  try {
    statSync(filename);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw cannotOpenError(filename, error);
    throw new Problem(
      'not-found',
      `The database ${filename} doesn't exist. Set DATABASE_URL to the database to use, or start a core first.`,
    );
  }
}

function cannotOpenError(filename: string, error: unknown): Problem {
  return new Problem(
    'unavailable',
    `Couldn't open the database file ${filename}: ${explainDatabaseError(error)?.cause ?? String(error)}.`,
    {
      cause: error,
    },
  );
}

/** Checks whether a database's files are still the ones that its connections have open. */
export type FileGuard = {
  /** Checks the files now. @throws UnsafeFileError if a write could be lost */
  check(): void;
  /** Called when a connection is about to be opened. */
  opening(): void;
  /** Called when a connection is about to be closed. The last one removes the WAL and its index. */
  closing(): void;
  /** Called when a connection was closed or couldn't be opened. */
  closed(): void;
};

/**
 * The index is checked by name only once in this many checks, because that takes twice as long as checking whether the open file still has
 * a name. So if the index alone was moved, the guard notices this later.
 */
const askForIndexEvery = 64;

/**
 * Guards a file. If it was moved, deleted, replaced or overwritten, writes to it are lost. SQLite doesn't report an error, because it
 * checks for this only when it creates a rollback journal, and WAL mode doesn't have one. The same applies to the WAL, which contains the
 * newest commits, and to its index, which processes use to find those commits and to coordinate. SQLite deletes both when the last
 * connection is closed, and the next one creates them again.
 *
 * @throws Problem `unavailable` if the file isn't safe from the start
 */
export function fileGuard(filename: string): FileGuard {
  // Follow links, because SQLite does, too, and creates the WAL and its index next to the real file.
  const file = realpathSync(filename);
  refuseUnsafe(file);
  const [wal, shm] = [`${file}-wal`, `${file}-shm`];
  const atFirst = toIdentity(statIfPresent(filename));
  const identities = new Map<string, string>();
  let connections = 0;
  let checks = 0;
  let index: WalIndex | undefined;
  let seen: { mtimeNs: bigint; size: bigint; checkpoints: Checkpoints } | undefined;
  /** The number of connections that aren't being closed. */
  let open = 0;
  /**
   * Once set, it isn't cleared, because while this process reopens its connections, another process may still be writing to the old files.
   */
  let harm: UnsafeFileError | undefined;

  function requireSame(path: string): string | undefined {
    const identity = toIdentity(statIfPresent(path));
    const cached = identities.get(path);
    if (cached !== undefined && cached !== identity)
      harm = movedError(path, 'which writes all acknowledged changes to the database as it stops, and start it again');
    if (harm) throw harm;
    if (identity !== undefined) identities.set(path, identity);
    return identity;
  }

  function checkCompanions(): void {
    requireSame(wal);
    if (index && !index.isDeleted() && ++checks % askForIndexEvery !== 0) return;
    const identity = requireSame(shm);
    if (identity !== undefined) index ??= openWalIndex(shm, identity);
  }

  /**
   * Checks whether another program has written to the file. In WAL mode, only checkpoints write to it, and the index shows each checkpoint
   * before its first write and after its last.
   */
  function checkContent({ mtimeNs, size }: BigIntStats, before: Checkpoints | undefined): void {
    if (before && seen && (mtimeNs !== seen.mtimeNs || size !== seen.size)) {
      const after = index?.checkpoints();
      if (after && after.done === after.attempted && isSame(after, seen.checkpoints)) harm = markOverwritten(file);
    }
    seen = before && { mtimeNs, size, checkpoints: before };
    if (harm) throw harm;
  }

  return {
    check() {
      // Read the checkpoints first, because one that runs between this and the check of the file must count for the next check.
      const before = index?.checkpoints();
      const stats = statIfPresent(filename);
      if (!stats || toIdentity(stats) !== atFirst)
        throw movedError(filename, 'put the file and its -wal file back, and start the core again');
      if (stats.nlink > 1n) throw hardLinkError(file);
      // Check for the marker, too, because a core that has noticed an overwritten file reopens its connections, and their checkpoint can
      // hide the change from the other cores.
      if (existsSync(markerPath(file))) harm ??= overwrittenError(file);
      if (harm) throw harm;
      if (open === 0) return;
      checkCompanions();
      checkContent(stats, before);
    },
    opening() {
      connections++;
      open++;
    },
    closing() {
      open--;
    },
    closed() {
      connections--;
      if (connections > 0) return;
      identities.clear();
      index?.close();
      index = undefined;
      seen = undefined;
    },
  };
}

const isSame = (a: Checkpoints, b: Checkpoints) => a.salt === b.salt && a.done === b.done;

function statIfPresent(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function toIdentity(stats: BigIntStats | undefined): string | undefined {
  return stats && `${stats.dev}:${stats.ino}`;
}

function refuseUnsafe(file: string): void {
  const error = findStartProblem(file);
  if (error) throw new Problem('unavailable', error.message, { cause: error });
}

function findStartProblem(file: string): UnsafeFileError | undefined {
  if (existsSync(markerPath(file))) return overwrittenError(file);
  if ((statIfPresent(file)?.nlink ?? 1n) > 1n) return hardLinkError(file);
  if (isMountPoint(file))
    return new UnsafeFileError(file, "is mounted without its folder, so other programs can't find its -wal", 'Mount its folder instead.');
  return undefined;
}

/** Whether the file is a mount point. Only Linux lists mount points in /proc. */
function isMountPoint(file: string): boolean {
  if (process.platform !== 'linux') return false;
  const unescaped = (path: string) => path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  const lines = readFileSync('/proc/self/mountinfo', 'latin1').split('\n');
  const name = Buffer.from(file).toString('latin1');
  return lines.some((line) => unescaped(line.split(' ')[4] ?? '') === name);
}

const markerPath = (file: string) => `${file}-overwritten`;

/**
 * Marks the file as overwritten, because the WAL's content was meant for the previous file. The marker is a file, so that the next process
 * knows, too.
 */
function markOverwritten(file: string): UnsafeFileError {
  const error = overwrittenError(file);
  try {
    writeFileSync(markerPath(file), `${error.message}\n`, { mode: 0o600 });
  } catch {
    // Ignore the error, because this process refuses to write anyway.
  }
  return error;
}

function overwrittenError(file: string): UnsafeFileError {
  const todo = `Stop the core, then restore a backup. If only its timestamp was changed, for example by touch, delete ${markerPath(file)} instead.`;
  return new UnsafeFileError(file, 'was overwritten or truncated by another program while a core was using it', todo);
}

function hardLinkError(file: string): UnsafeFileError {
  const todo = `Remove its other names. To find them, run: find ${dirname(file)} -samefile ${file}`;
  return new UnsafeFileError(
    file,
    'has another name (a hard link), and programs that open it by that name use a different -wal file',
    todo,
  );
}

function movedError(file: string, todo: string): UnsafeFileError {
  return new UnsafeFileError(file, 'was moved, deleted or replaced', `Stop the core, ${todo}.`);
}

/**
 * The progress of checkpoints, in frames of the WAL. `salt` changes each time the WAL starts again. While a checkpoint is running,
 * `attempted` is ahead of `done`.
 */
export type Checkpoints = { salt: number; done: number; attempted: number };

type WalIndex = {
  /** Whether the file no longer has a name. This is faster than checking by name. */
  isDeleted(): boolean;
  checkpoints(): Checkpoints | undefined;
  close(): void;
};

/**
 * Open files by identity. Closing any descriptor of a file drops all of the process's locks on it, including SQLite's. So each file is
 * opened only once, and is closed when its last user has closed all connections.
 */
const opened = new Map<string, { descriptor: number; users: number }>();

/** The positions of fields, in bytes from the start of the index (see https://sqlite.org/walformat.html#walidxfmt). */
const at = { salt: 32, done: 96, attempted: 128, end: 132 } as const;

/**
 * Opens the `-shm` file, which SQLite maps into memory. This isn't possible on Windows, because SQLite's locks block other readers there.
 */
function openWalIndex(path: string, identity: string): WalIndex {
  if (process.platform === 'win32') return { isDeleted: () => false, checkpoints: () => undefined, close: () => undefined };
  const index = opened.get(identity) ?? { descriptor: openSync(path, 'r'), users: 0 };
  opened.set(identity, index);
  index.users++;
  const bytes = Buffer.alloc(at.end);
  return {
    isDeleted: () => fstatSync(index.descriptor).nlink === 0,
    checkpoints() {
      if (readSync(index.descriptor, bytes, 0, at.end, 0) < at.end) return undefined;
      return { salt: bytes.readUInt32LE(at.salt), done: bytes.readUInt32LE(at.done), attempted: bytes.readUInt32LE(at.attempted) };
    },
    close() {
      if (--index.users > 0) return;
      opened.delete(identity);
      closeSync(index.descriptor);
    },
  };
}
