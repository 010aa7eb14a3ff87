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
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { errorCode, Problem } from '../../../domain/problem.ts';
import { explainDatabaseError, UnusableDatabase } from '../errors.ts';

/** Creates the file, with access only for its owner, if it doesn't exist. @throws Problem `unavailable` */
export function makeFile(filename: string): void {
  try {
    mkdirSync(dirname(filename), { recursive: true, mode: 0o700 });
    // Don't open an existing file, because closing it would drop this process's locks on it.
    const found = statSync(filename, { throwIfNoEntry: false });
    if (found) refuseSpecial(found);
    if (found?.isFile()) requireWritable(filename);
    else closeSync(openSync(filename, 'a', 0o600));
  } catch (error) {
    throw cannotOpenError(filename, error);
  }
}

/** Refuses pipes, devices and sockets, because opening one could hang. */
function refuseSpecial(found: Stats): void {
  if (found.isFile() || found.isDirectory()) return;
  throw new UnusableDatabase('SQLITE_CANTOPEN', "it isn't a regular file", 'Use the path of a file.');
}

/** Checks that SQLite can write to the file and to its folder, which contains the WAL. @throws Error of the file system */
export function requireWritable(filename: string): void {
  accessSync(filename, constants.R_OK | constants.W_OK);
  accessSync(dirname(filename), constants.W_OK);
}

/** Checks that the file exists. @throws Problem `not-found` or `unavailable` */
export function requireFile(filename: string): void {
  try {
    refuseSpecial(statSync(filename));
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

export type FileGuard = ReturnType<typeof fileGuard>;

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
export function fileGuard(filename: string) {
  // Follow links, because SQLite does, too, and creates the WAL and its index next to the real file.
  const file = realpathSync(filename);
  refuseUnsafe(file);
  const [wal, shm] = [`${file}-wal`, `${file}-shm`];
  const atFirst = toIdentity(statIfPresent(filename)) ?? '';
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
  let harm: UnusableDatabase | undefined;

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
    if (identity !== undefined) index ??= openWalIndex(file, { file: atFirst, index: identity });
  }

  /**
   * Checks whether another program has written to the file. In WAL mode, only checkpoints write to it, and the index shows each checkpoint
   * before its first write and after its last. If there was one since the last check, the file must still be as it left it: with the page of
   * one of the last frames that it copied, which that frame's transaction has changed, so an earlier copy of the file has another one there.
   *
   * Two moments remain in which overwriting isn't noticed: between a check and a checkpoint by the commit that follows it, which writes these
   * pages again, and after another core has emptied the WAL, until that core checks the file.
   */
  function checkContent({ mtimeNs, size }: BigIntStats, before: Checkpoints | undefined): void {
    if (!seen || mtimeNs !== seen.mtimeNs || size !== seen.size) {
      const after = index?.checkpoints();
      if (!after || after.done !== after.attempted) return;
      const wasOverwritten = (seen && isSame(after, seen.checkpoints)) || index?.wasOverwritten(after);
      // The next check decides.
      if (wasOverwritten === undefined) return;
      if (wasOverwritten) harm = markOverwritten(file);
    }
    if (harm) throw harm;
    seen = before && { mtimeNs, size, checkpoints: before };
  }

  return {
    /** Checks the files now. @throws UnusableDatabase if a write could be lost */
    check(): void {
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
    /** Whether a checkpoint is running, or was interrupted by a crash. Until the next one finishes, overwriting can't be noticed. */
    isCheckpointUnfinished(): boolean {
      const checkpoints = index?.checkpoints();
      return checkpoints !== undefined && checkpoints.done !== checkpoints.attempted;
    },
    opening(): void {
      connections++;
      open++;
    },
    /** Called when a connection is about to be closed. The last one removes the WAL and its index. */
    closing(): void {
      open--;
    },
    /** Called when a connection was closed or couldn't be opened. */
    closed(): void {
      connections--;
      if (connections > 0) return;
      identities.clear();
      index?.close();
      index = undefined;
      seen = undefined;
    },
  };
}

type Progress = Pick<Checkpoints, 'salt' | 'done'>;
const isSame = (a: Progress, b: Progress) => a.salt === b.salt && a.done === b.done;

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

function findStartProblem(file: string): UnusableDatabase | undefined {
  if (existsSync(markerPath(file))) return overwrittenError(file);
  if ((statIfPresent(file)?.nlink ?? 1n) > 1n) return hardLinkError(file);
  if (isMountPoint(file))
    return unsafeFile(file, "is mounted without its folder, so other programs can't find its -wal", 'Mount its folder instead.');
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

/** Marks the file, so that the next process also knows that the WAL's content was meant for another one. */
function markOverwritten(file: string): UnusableDatabase {
  const error = overwrittenError(file);
  try {
    writeFileSync(markerPath(file), `${error.message}\n`, { mode: 0o600 });
  } catch {
    // Ignore the error, because this process refuses to write anyway.
  }
  return error;
}

function overwrittenError(file: string): UnusableDatabase {
  const todo = `Stop the core, then restore a backup. If only its timestamp was changed, for example by touch, delete ${markerPath(file)} instead.`;
  return unsafeFile(file, 'was overwritten or truncated by another program while a core was using it', todo);
}

function hardLinkError(file: string): UnusableDatabase {
  const todo = `Remove its other names. To find them, run: find ${dirname(file)} -samefile ${file}`;
  return unsafeFile(file, 'has another name (a hard link), and programs that open it by that name use a different -wal file', todo);
}

/** SQLite itself doesn't notice that it would lose writes. */
function unsafeFile(file: string, what: string, remedy: string): UnusableDatabase {
  const message = `The database file ${file} ${what}. ${remedy}`;
  return new UnusableDatabase('SQLITE_READONLY_DBMOVED', `the file ${file} ${what}`, remedy, message);
}

function movedError(file: string, todo: string): UnusableDatabase {
  return unsafeFile(file, 'was moved, deleted or replaced', `Stop the core, ${todo}.`);
}

/**
 * The progress of checkpoints, in frames of the WAL. `salt` changes each time the WAL starts again. While a checkpoint is running,
 * `attempted` is ahead of `done`. `lastFrame` is the one of the newest commit.
 */
type Checkpoints = { salt: number; done: number; attempted: number; lastFrame: number; pageSize: number };

type WalIndex = {
  /** Whether the file no longer has a name. This is faster than checking by name. */
  isDeleted(): boolean;
  checkpoints(): Checkpoints | undefined;
  /** Whether the database isn't as these checkpoints left it, as far as one of their last frames shows; undefined if that can't be told now. */
  wasOverwritten(checkpoints: Checkpoints): boolean | undefined;
  close(): void;
};

/**
 * Open files by identity. Closing any descriptor of a file drops all of the process's locks on it, including SQLite's. So each file is
 * opened only once, and is closed when its last user has closed all connections.
 */
const opened = new Map<string, { descriptor: number; users: number }>();

function openShared(path: string, identity: string): { descriptor: number; close(): void } {
  const shared = opened.get(identity) ?? { descriptor: openSync(path, 'r'), users: 0 };
  opened.set(identity, shared);
  shared.users++;
  return {
    descriptor: shared.descriptor,
    close() {
      if (--shared.users > 0) return;
      opened.delete(identity);
      closeSync(shared.descriptor);
    },
  };
}

/** The positions of fields, in bytes from the start of the index (see https://sqlite.org/walformat.html#walidxfmt). */
const at = { pageSize: 14, lastFrame: 16, salt: 32, done: 96, attempted: 128, end: 132 } as const;
/** The same for a frame of the WAL, which begins with a header of its own. */
const frameAt = { pageNumber: 0, pages: 4, salt: 8, page: 24 } as const;
const walHeader = 32;

/**
 * Opens the `-shm` file, which SQLite maps into memory. This isn't possible on Windows, because SQLite's locks block other readers there.
 */
function openWalIndex(file: string, identities: { file: string; index: string }): WalIndex {
  if (process.platform === 'win32')
    return { isDeleted: () => false, checkpoints: () => undefined, wasOverwritten: () => undefined, close: () => undefined };
  const index = openShared(`${file}-shm`, identities.index);
  const database = openShared(file, identities.file);
  const bytes = Buffer.alloc(at.end);
  function checkpoints(): Checkpoints | undefined {
    if (readSync(index.descriptor, bytes, 0, at.end, 0) < at.end) return undefined;
    const size = bytes.readUInt16LE(at.pageSize);
    return {
      salt: bytes.readUInt32LE(at.salt),
      done: bytes.readUInt32LE(at.done),
      attempted: bytes.readUInt32LE(at.attempted),
      lastFrame: bytes.readUInt32LE(at.lastFrame),
      // 1 stands for 65,536.
      pageSize: size === 1 ? 65_536 : size,
    };
  }
  return {
    isDeleted: () => fstatSync(index.descriptor).nlink === 0,
    checkpoints,
    wasOverwritten({ salt, done, attempted, pageSize }) {
      if (done === 0) return false;
      // Read it again, because it must not be older than the checkpoint.
      const { lastFrame = 0 } = checkpoints() ?? {};
      const frame = readLastCopied(`${file}-wal`, { salt, done, lastFrame, pageSize });
      if (frame === 'unreadable') return undefined;
      // Nothing can be compared, and reading so many frames at each check would take too long.
      if (frame === 'none') return false;
      const page = Buffer.alloc(pageSize);
      const found = readSync(database.descriptor, page, 0, pageSize, (frame.readUInt32BE(frameAt.pageNumber) - 1) * pageSize);
      const { size } = fstatSync(database.descriptor);
      const after = checkpoints();
      // Another checkpoint may have begun in the meantime, or the WAL may have started again.
      if (!after || !isSame(after, { salt, done }) || after.attempted !== attempted) return undefined;
      // A checkpoint that has copied the newest commit also sets the file's size.
      const hasOtherSize = lastFrame === done && size !== frame.readUInt32BE(frameAt.pages) * pageSize;
      return hasOtherSize || found < pageSize || !page.equals(frame.subarray(frameAt.page));
    },
    close() {
      index.close();
      database.close();
    },
  };
}

/**
 * Reads the last frame that checkpoints have copied. A checkpoint stops at the snapshot of the oldest reader, and doesn't copy pages that have
 * changed since then, so later frames must not have the same page.
 */
function readLastCopied(wal: string, { salt, done, lastFrame, pageSize }: Omit<Checkpoints, 'attempted'>): Buffer | 'none' | 'unreadable' {
  // SQLite has no locks on this file, so it may be closed again.
  const descriptor = openSync(wal, 'r');
  const frame = Buffer.alloc(frameAt.page + pageSize);
  const read = (number: number, length: number) =>
    readSync(descriptor, frame, 0, length, walHeader + (number - 1) * frame.length) === length && frame.readUInt32LE(frameAt.salt) === salt;
  try {
    const later = new Set<number>();
    for (let number = lastFrame; number > 0; number--) {
      if (!read(number, frameAt.page)) return 'unreadable';
      const pageNumber = frame.readUInt32BE(frameAt.pageNumber);
      if (number <= done && !later.has(pageNumber)) return read(number, frame.length) ? frame : 'unreadable';
      later.add(pageNumber);
    }
    return 'none';
  } finally {
    closeSync(descriptor);
  }
}
