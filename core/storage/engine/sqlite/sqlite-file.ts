import {
  accessSync,
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../../../domain/error-code.ts';
import { Problem } from '../../../domain/problem.ts';
import { explainDatabaseError } from '../error-text.ts';
import { UnsafeFileError } from '../errors.ts';
import { type Checkpoints, openWalIndex, type WalIndex } from './sqlite-wal-index.ts';

/** Creates the file, readable by its owner only, or requires it. @throws Problem `not-found` or `unavailable` */
export function prepareFile(filename: string, ifMissing: 'make' | 'refuse'): void {
  if (ifMissing === 'make') makeFile(filename);
  else requireFile(filename);
}

function makeFile(filename: string): void {
  try {
    mkdirSync(dirname(filename), { recursive: true, mode: 0o700 });
    // One that exists stays closed: to close it would drop the locks of this process on it.
    if (statSync(filename, { throwIfNoEntry: false })?.isFile()) requireWritable(filename);
    else closeSync(openSync(filename, 'a', 0o600));
  } catch (error) {
    throw notOpened(filename, error);
  }
}

/** SQLite needs to write the folder, too, where it has the WAL. @throws Error of the file system */
export function requireWritable(filename: string): void {
  accessSync(filename, constants.R_OK | constants.W_OK);
  accessSync(dirname(filename), constants.W_OK);
}

/** @throws Problem `not-found` or `unavailable` */
export function requireFile(filename: string): void {
  try {
    statSync(filename);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw notOpened(filename, error);
    throw new Problem('not-found', `The database ${filename} doesn't exist. Set DATABASE_URL to an existing one, or start a core first.`);
  }
}

function notOpened(filename: string, error: unknown): Problem {
  return new Problem(
    'unavailable',
    `Couldn't open the database file ${filename}: ${explainDatabaseError(error)?.cause ?? String(error)}.`,
    {
      cause: error,
    },
  );
}

/** Looks whether the files of a database are still those that its connections have open, and no other program's. */
export type FileGuard = {
  /** @throws UnsafeFileError if what is written now could be lost */
  check(): void;
  /** A connection is about to be opened. */
  opening(): void;
  /** A connection is about to be closed: the last one takes the WAL and its index with it. */
  closing(): void;
  /** A connection was closed, or could not be opened. */
  closed(): void;
};

/** A look by name takes twice as long as a look whether the file has one. Only a move of the index, and of nothing else, is seen later so. */
const askForIndexEvery = 64;

/**
 * Writes to a file that was moved, deleted, replaced or overwritten are lost, and SQLite reports no error: it only checks for this when it
 * creates a rollback journal, which WAL mode does not have. The same goes for the WAL, which holds the newest commits, and for its index, by
 * which processes find them and keep out of each other's way. SQLite deletes both with the last connection, and the next one creates others.
 *
 * @throws Problem `unavailable` if the file is not safe to begin with
 */
export function fileGuard(filename: string): FileGuard {
  // SQLite follows links, too, and has the other two beside the file itself.
  const file = realpathSync(filename);
  refuseUnsafe(file);
  const [wal, shm] = [`${file}-wal`, `${file}-shm`];
  const atFirst = identityOf(statOf(filename));
  const identities = new Map<string, string>();
  let connections = 0;
  let checks = 0;
  let index: WalIndex | undefined;
  let seen: { mtimeNs: bigint; size: bigint; checkpoints: Checkpoints } | undefined;
  /** How many of them are not being closed. */
  let open = 0;
  /** Stays: while this process closed its connections and opened others, another one could still be writing by the old files. */
  let harm: UnsafeFileError | undefined;

  function requireSame(path: string): string | undefined {
    const identity = identityOf(statOf(path));
    const known = identities.get(path);
    if (known !== undefined && known !== identity)
      harm = moved(path, 'which writes everything it acknowledged to the database as it stops, and start it again');
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

  /** In WAL mode, only checkpoints write to the file, and each one shows in the index before its first write and after its last. */
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
      // First: a checkpoint between this and the look at the file must count as one of the next look.
      const before = index?.checkpoints();
      const found = statOf(filename);
      if (!found || identityOf(found) !== atFirst) throw moved(filename, 'put the file back with its -wal, and start it again');
      if (found.nlink > 1n) throw linked(file);
      // A core that has noticed it reopens its connections, and the checkpoint of those can hide it from the other cores.
      if (existsSync(markerOf(file))) harm ??= overwrittenError(file);
      if (harm) throw harm;
      if (open === 0) return;
      checkCompanions();
      checkContent(found, before);
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

const isSame = (one: Checkpoints, other: Checkpoints) => one.salt === other.salt && one.done === other.done;

function statOf(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function identityOf(found: BigIntStats | undefined): string | undefined {
  return found && `${found.dev}:${found.ino}`;
}

function refuseUnsafe(file: string): void {
  const error = unsafeAtStart(file);
  if (error) throw new Problem('unavailable', error.message, { cause: error });
}

function unsafeAtStart(file: string): UnsafeFileError | undefined {
  if (existsSync(markerOf(file))) return overwrittenError(file);
  if ((statOf(file)?.nlink ?? 1n) > 1n) return linked(file);
  if (isMountPoint(file))
    return new UnsafeFileError(file, "is mounted by itself, so other programs can't find its -wal", 'Mount its folder instead.');
  return undefined;
}

/** Only Linux lists its mounts there. */
function isMountPoint(file: string): boolean {
  if (process.platform !== 'linux') return false;
  const unescaped = (path: string) => path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  const lines = readFileSync('/proc/self/mountinfo', 'latin1').split('\n');
  const name = Buffer.from(file).toString('latin1');
  return lines.some((line) => unescaped(line.split(' ')[4] ?? '') === name);
}

const markerOf = (file: string) => `${file}-overwritten`;

/** What the WAL had was meant for the file of before. The mark outlives this process: the next one could not tell. */
function markOverwritten(file: string): UnsafeFileError {
  const error = overwrittenError(file);
  try {
    writeFileSync(markerOf(file), `${error.message}\n`, { mode: 0o600 });
  } catch {
    // This process refuses to write all the same.
  }
  return error;
}

function overwrittenError(file: string): UnsafeFileError {
  const todo = `Stop the core, then put a backup in its place with "admin restore". If only its timestamp was changed, for example by touch, delete ${markerOf(file)} instead.`;
  return new UnsafeFileError(file, 'was overwritten or truncated by another program while a core was using it', todo);
}

function linked(file: string): UnsafeFileError {
  const todo = `Remove its other names. To find them, run: find ${dirname(file)} -samefile ${file}`;
  return new UnsafeFileError(file, 'has a second name (a hard link), and programs that use it have a different -wal', todo);
}

function moved(file: string, todo: string): UnsafeFileError {
  return new UnsafeFileError(file, 'was moved, deleted or replaced', `Stop the core, ${todo}.`);
}
