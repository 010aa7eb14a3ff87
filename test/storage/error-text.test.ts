import { expect } from 'chai';
import { databaseErrorText } from '../../core/storage/error-text.ts';

const sqlite = { kind: 'sqlite', filename: '/data/callkey.db' } as const;
const postgres = { kind: 'postgres', url: 'postgres://ada:hunter2@db.example:5432/callkey?password=hunter2' } as const;
const failure = (message: string, more: object) => Object.assign(new Error(message), more);

describe('the text of a database error', () => {
  for (const [what, error, location, text] of [
    [
      'a file that is something else',
      failure('SQLITE_NOTADB: file is not a database', { code: 'SQLITE_NOTADB' }),
      sqlite,
      'The database /data/callkey.db cannot be used: the file is not a SQLite database (SQLITE_NOTADB). Set DATABASE_URL to a Callkey database, or to a file that does not exist yet.',
    ],
    [
      'a file in the path, which mkdir reports as one that exists',
      failure('EEXIST', { code: 'EEXIST', syscall: 'mkdir' }),
      sqlite,
      'The database /data/callkey.db cannot be used: a part of its path is not a folder (EEXIST). Check the path.',
    ],
    [
      'the first of several addresses that refuse',
      Object.assign(new AggregateError([failure('no', { address: '::1', port: 5432 })]), { code: 'ECONNREFUSED' }),
      postgres,
      'The database callkey at db.example:5432 cannot be used: connection refused at ::1:5432 (ECONNREFUSED). Start PostgreSQL there, or correct the address.',
    ],
    [
      "PostgreSQL's own words, without the statement",
      failure('select * from users - permission denied for table users', { code: '42501', severity: 'ERROR' }),
      postgres,
      'The database callkey at db.example:5432 cannot be used: permission denied for table users (42501). Grant the user that permission.',
    ],
    [
      'a password that is missing',
      new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
      postgres,
      'The database callkey at db.example:5432 cannot be used: PostgreSQL asks for a password, and there is none. Put it into DATABASE_URL.',
    ],
    [
      'the cause of another error',
      new Error('wrapped', { cause: failure('x', { code: 'ETIMEDOUT' }) }),
      postgres,
      'The database callkey at db.example:5432 cannot be used: no answer (ETIMEDOUT). Check the address, and the firewalls on the way.',
    ],
  ] as const) {
    it(`says ${what}`, () => {
      expect(databaseErrorText(error, location)).to.equal(text);
    });
  }

  it('is absent for an error of another kind', () => {
    expect(databaseErrorText(new TypeError('x is not a function'), sqlite)).to.equal(undefined);
  });
});
