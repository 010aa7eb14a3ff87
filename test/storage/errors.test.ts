import { expect } from 'chai';
import { Problem } from '../../core/domain/problem.ts';
import {
  isDataError,
  isForeignKeyViolation,
  isLocked,
  isOutage,
  isSingleRowError,
  isUndone,
  isUniqueViolation,
  rejectOrphan,
  reportingOutages,
} from '../../core/storage/engine/errors.ts';

const failure = (code: string, message = 'x') => Object.assign(new Error(message), { code });
const postgresOutages = ['08006', '28P01', '3D000', '40001', '53300', '55P03', '57P01', '58030', '25006', '25P03', '25P04'];
const codes = [
  ...['BUSY', 'LOCKED', 'FULL', 'IOERR', 'CANTOPEN', 'READONLY', 'NOMEM', 'CORRUPT', 'NOTADB', 'PROTOCOL', 'MISUSE'].map(
    (name) => `SQLITE_${name}`,
  ),
  ...['CONSTRAINT', 'MISMATCH', 'TOOBIG', 'RANGE', 'ERROR'].map((name) => `SQLITE_${name}`),
  ...['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT'],
  ...postgresOutages,
  ...['25001', '22001', '23505', '54000', '42601'],
  ...['X08006', '080066', 'XSQLITE_BUSY', 'XECONNREFUSED', '5580', 'XSQLITE_RANGE', 'X2200', '220011', 'x2300', '99908'],
];
const codesThat = (is: (error: unknown) => boolean) => codes.filter((code) => is(failure(code)));

describe('classifying a database error', () => {
  it('recognizes an outage by the codes of SQLite, sockets and PostgreSQL', () => {
    const outages = [...codes.slice(0, 11), ...codes.slice(16, 24), ...postgresOutages];
    expect(codesThat(isOutage)).to.deep.equal(outages);
  });

  for (const message of [
    'Connection terminated unexpectedly',
    'There was an error establishing an SSL connection',
    'connection timeout',
    'timeout expired',
    'Query read timeout',
    'Client has encountered a connection error and is not queryable',
    'Unable to acquire a connection',
    'The statement was aborted',
  ]) {
    it(`recognizes an outage without a code by the message "${message}"`, () => {
      expect(isOutage(new Error(message))).to.equal(true);
      expect(isOutage(failure('42601', message))).to.equal(false);
      expect(isOutage(message)).to.equal(false);
    });
  }

  it('recognizes an outage if the pool had no free connection', () => {
    expect(isOutage(Object.assign(new Error('x'), { name: 'KnexTimeoutError' }))).to.equal(true);
    expect(isOutage(new Error('x'))).to.equal(false);
  });

  it('recognizes that the database refused a value', () => {
    const refused = [...codes.slice(11, 16), '40001', '22001', '23505', '54000'];
    expect(codesThat(isDataError)).to.deep.equal(refused);
  });

  it('recognizes that a single row of a batch may have caused the error, including a lock on that row', () => {
    expect(codesThat(isSingleRowError)).to.deep.equal([...codes.slice(11, 16), '40001', '55P03', '22001', '23505', '54000']);
  });

  it('recognizes that another process holds the SQLite lock', () => {
    expect(codesThat(isLocked)).to.deep.equal(['SQLITE_BUSY', 'SQLITE_LOCKED']);
  });

  for (const [what, is, state, message] of [
    ['a row already exists', isUniqueViolation, '23505', 'SQLITE_CONSTRAINT: UNIQUE constraint failed: users.email'],
    ['a referenced row is missing', isForeignKeyViolation, '23503', 'SQLITE_CONSTRAINT: FOREIGN KEY constraint failed'],
  ] as const) {
    it(`recognizes that ${what}`, () => {
      expect(is(failure(state))).to.equal(true);
      expect(is(failure('SQLITE_CONSTRAINT', message))).to.equal(true);
      const others = [
        failure('23502'),
        failure('SQLITE_CONSTRAINT', 'NOT NULL constraint failed'),
        failure('SQLITE_ERROR', message),
        new Error(message),
      ];
      expect(others.map(is)).to.deep.equal([false, false, false, false]);
    });
  }

  it('recognizes that the user of a request no longer exists', () => {
    expect(() => rejectOrphan(failure('23503')))
      .to.throw(Problem, 'This request needs valid credentials.')
      .with.property('code', 'unauthorized');
    const other = failure('23505');
    expect(() => rejectOrphan(other)).to.throw(other);
  });
});

describe('a lost node of a database with shards', () => {
  const error = (code: string, message: string, where = '') => Object.assign(failure(code, message), { severity: 'ERROR', where });
  for (const [code, message, where] of [
    [
      '08006',
      'connection to the remote node postgres@10.0.0.2:5432 failed with the following error: server closed the connection unexpectedly',
    ],
    ['XX000', 'server closed the connection unexpectedly', 'while executing command on 10.0.0.2:5432'],
    ['XX000', 'failure on connection marked as essential: 10.0.0.2:5432'],
    ['57P01', 'terminating connection due to administrator command', 'while executing command on 10.0.0.2:5432'],
  ] as const)
    it(`is out of reach, and may have committed: ${code} ${message}`, () => {
      const lost = error(code, message, where);
      expect([isOutage(lost), isUndone(lost)]).to.deep.equal([true, false]);
    });

  it('certainly has no changes from the statement if it refused the connection', () => {
    const refused = error(
      '08006',
      'connection to the remote node postgres@10.0.0.2:5432 failed with the following error: Connection refused',
    );
    expect([isOutage(refused), isUndone(refused)]).to.deep.equal([true, true]);
  });

  it("isn't assumed after an internal error with a different cause, or after an error of the server itself", () => {
    const internal = error('XX000', 'cache lookup failed for relation 1');
    expect([isOutage(internal), isUndone(internal), isUndone(Object.assign(failure('57P01'), { severity: 'FATAL' }))]).to.deep.equal([
      false,
      true,
      false,
    ]);
  });
});

describe('a store that reports outages', () => {
  const thrown = (error: unknown) =>
    reportingOutages({ store: { find: (id: string) => (id === 'there' ? Promise.resolve(id) : Promise.reject(error)) } })
      .store.find('x')
      .catch((caught: unknown) => caught);

  it("returns the store's result", async () => {
    expect(await reportingOutages({ store: { find: async (id: string, more: string) => id + more } }).store.find('a', 'b')).to.equal('ab');
  });

  for (const [code, what] of [
    ['SQLITE_BUSY', 'The database is busy with another process.'],
    ['ECONNREFUSED', "The database can't be reached or written to."],
  ] as const) {
    it(`asks the caller to retry after ${code}`, async () => {
      const cause = failure(code);
      const problem = await thrown(cause);
      expect(problem).to.include({ code: 'unavailable', retryAfter: 2, message: `${what} Try again shortly.`, cause });
    });
  }

  it("rethrows an error that isn't an outage", async () => {
    const error = failure('42601');
    expect(await thrown(error)).to.equal(error);
  });
});
