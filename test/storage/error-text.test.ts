import { expect } from 'chai';
import { databaseErrorText } from '../../core/storage/engine/errors.ts';

const sqlite = { kind: 'sqlite', filename: '/data/callkey.db' } as const;
const postgres = { kind: 'postgres', url: 'postgres://ada:hunter2@db.example:5432/callkey?password=hunter2' } as const;
const failure = (message: string, more: object) => Object.assign(new Error(message), more);

describe('the message for a database error', () => {
  for (const [what, error, location, text] of [
    [
      'a file in the path, which mkdir reports as already existing',
      failure('EEXIST', { code: 'EEXIST', syscall: 'mkdir' }),
      sqlite,
      "Can't use the database /data/callkey.db: part of its path isn't a folder (EEXIST). Check the path.",
    ],
    [
      'the first of several addresses that refused',
      Object.assign(new AggregateError([failure('no', { address: '::1', port: 5432 })]), { code: 'ECONNREFUSED' }),
      postgres,
      "Can't use the database callkey at db.example:5432: connection refused at ::1:5432 (ECONNREFUSED). Start PostgreSQL there, or fix the address.",
    ],
    [
      "no address if the error doesn't have one",
      Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }),
      postgres,
      "Can't use the database callkey at db.example:5432: connection refused (ECONNREFUSED). Start PostgreSQL there, or fix the address.",
    ],
    [
      'no address for a Unix socket, which has no port',
      failure('no', { code: 'ENOENT', address: '/run/postgresql/.s.PGSQL.5432' }),
      postgres,
      "Can't use the database callkey at db.example:5432: no such file or folder (ENOENT). Check the path.",
    ],
    [
      'other mkdir errors unchanged',
      failure('EACCES', { code: 'EACCES', syscall: 'mkdir' }),
      sqlite,
      "Can't use the database /data/callkey.db: permission denied (EACCES). Give this user read and write access to the file and its folder.",
    ],
    [
      "PostgreSQL's own message without the statement",
      failure('select * from users - permission denied for table users', { code: '42501', severity: 'ERROR' }),
      postgres,
      "Can't use the database callkey at db.example:5432: permission denied for table users (42501). Grant the user that permission.",
    ],
    [
      'that a password is missing',
      new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
      postgres,
      "Can't use the database callkey at db.example:5432: PostgreSQL requires a password, and none is set. Add it to DATABASE_URL.",
    ],
    [
      'the cause of another error',
      new Error('wrapped', { cause: failure('x', { code: 'ETIMEDOUT' }) }),
      postgres,
      "Can't use the database callkey at db.example:5432: no response (ETIMEDOUT). Check the address and any firewalls in between.",
    ],
  ] as const) {
    it(`shows ${what}`, () => {
      expect(databaseErrorText(error, location)).to.equal(text);
    });
  }

  for (const [codes, cause, remedy] of [
    ['SQLITE_NOTADB', "the file isn't a SQLite database", "Set DATABASE_URL to a Callkey database, or to a file that doesn't exist yet."],
    ['SQLITE_CORRUPT', 'the file is damaged', 'Restore a backup.'],
    ['SQLITE_BUSY SQLITE_LOCKED', 'another process has locked it', 'Stop that process, or try again.'],
    [
      'SQLITE_READONLY_DBMOVED',
      'the file was moved, deleted or replaced',
      'Stop the core, put the file and its -wal file back, and start the core again.',
    ],
    ['SQLITE_READONLY EROFS', 'it is read-only', 'Give this user write access to the file and its folder.'],
    ['SQLITE_FULL ENOSPC EDQUOT', 'the disk is full', 'Free up some disk space.'],
    ['SQLITE_IOERR EIO', 'the disk is failing', 'Check the disk.'],
    ['SQLITE_PERM SQLITE_AUTH EACCES EPERM', 'permission denied', 'Give this user read and write access to the file and its folder.'],
    ['SQLITE_CANTOPEN', "the file can't be opened", 'Check that the path names a file in a folder that this user can write to.'],
    ['ENOENT', 'no such file or folder', 'Check the path.'],
    ['ENOTDIR', "part of its path isn't a folder", 'Check the path.'],
    ['EISDIR', 'it is a folder', 'Use the path of a file.'],
    ['ECONNREFUSED', 'connection refused', 'Start PostgreSQL there, or fix the address.'],
    ['ENOTFOUND EAI_AGAIN', 'unknown host name', 'Check the host name in DATABASE_URL.'],
    ['EHOSTUNREACH ENETUNREACH', 'the host is unreachable', 'Check the network between this machine and the host.'],
    ['ECONNRESET EPIPE', 'the connection was lost', 'Check that PostgreSQL is running there, then try again.'],
    ['ELOOP ENAMETOOLONG', 'its path is invalid', 'Check the path.'],
    ['ETIMEDOUT', 'no response', 'Check the address and any firewalls in between.'],
    ['3D000', 'x', 'Create the database first, with createdb.'],
    ['28P01', 'x', 'Fix the username or password in DATABASE_URL.'],
    ['28000', 'x', 'Check the user in DATABASE_URL, and pg_hba.conf on the server.'],
    ['42501', 'x', 'Grant the user that permission.'],
    ['25006', 'x', 'Set DATABASE_URL to the primary server, and turn off default_transaction_read_only.'],
    ['53300', 'x', 'Raise max_connections, or stop other programs that use the server.'],
    ['57P01 57P02 57P03', 'x', 'Try again when the server is up.'],
  ] as const) {
    it(`says what to do after ${codes}`, () => {
      for (const code of codes.split(' ')) {
        const expected = `Can't use the database /data/callkey.db: ${cause} (${code}). ${remedy}`;
        expect(databaseErrorText(failure('x', { code }), sqlite)).to.equal(expected);
        expect(databaseErrorText(failure('x', { code: `X${code}` }), sqlite)).to.equal(undefined);
      }
    });
  }

  it('gives no advice for an error that is specific to PostgreSQL, unless PostgreSQL refused the connection', () => {
    const say = (severity: string) =>
      databaseErrorText(failure('insert - odd thing in public.calls.\nmore', { code: 'odd', severity }), sqlite);
    const text = "Can't use the database /data/callkey.db: odd thing in public.calls (odd).";
    expect(say('ERROR')).to.equal(text);
    expect(say('FATAL')).to.equal(`${text} Check the user, the database and the options in DATABASE_URL.`);
  });

  it("says that the database didn't respond if the time is up", () => {
    const text = "Can't use the database /data/callkey.db: no response. Check the address and any firewalls in between.";
    const pool = failure('x', { name: 'KnexTimeoutError' });
    expect([new Error('Timed out'), new Error('a timeout'), pool].map((error) => databaseErrorText(error, sqlite))).to.deep.equal([
      text,
      text,
      text,
    ]);
    expect(databaseErrorText(failure('a timeout', { code: 'odd' }), sqlite)).to.equal(undefined);
  });

  it('names the database if the address has no host', () => {
    const location = { kind: 'postgres', url: 'postgres:///callkey' } as const;
    expect(databaseErrorText(failure('x', { code: 'EIO' }), location)).to.equal(
      "Can't use the database callkey: the disk is failing (EIO). Check the disk.",
    );
  });

  it("is omitted for an error that isn't about the database", () => {
    const others = [
      new TypeError('x is not a function'),
      failure('EEXIST', { code: 'EEXIST', syscall: 'open' }),
      failure('x', { code: '425011' }),
    ];
    expect(others.map((error) => databaseErrorText(error, sqlite))).to.deep.equal([undefined, undefined, undefined]);
  });
});
