import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect } from 'chai';
import pg from 'pg';
import { databaseErrorText, isOutage } from '../../core/storage/engine/errors.ts';
import { openPostgres } from '../../core/storage/engine/postgres/postgres.ts';
import { normalizeUrl, parseAddresses } from '../../core/storage/engine/postgres/postgres-address.ts';
import { emptyDatabase, itOnPostgres } from '../support/databases.ts';
import { listenHere } from '../support/listen.ts';

describe('a PostgreSQL address with several hosts', () => {
  it('is split into one address per host', () => {
    expect(parseAddresses('postgres://u:p%40,x@one:5432,two,[::1]:5433/callkey?sslmode=verify-full')).to.deep.equal([
      'postgres://u:p%40,x@one:5432/callkey?sslmode=verify-full',
      'postgres://u:p%40,x@two/callkey?sslmode=verify-full',
      'postgres://u:p%40,x@[::1]:5433/callkey?sslmode=verify-full',
    ]);
    expect(parseAddresses('postgres:///callkey')).to.deep.equal(['postgres:///callkey']);
  });

  it('shows its hosts in errors, but not its password', () => {
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    const text = databaseErrorText(refused, { kind: 'postgres', url: 'postgres://u:secret@one:1,two/callkey' });
    expect(text).to.contain('callkey at one:1, two');
    expect(text).not.to.contain('secret');
  });
});

describe('the address of a PostgreSQL database', () => {
  for (const [url, expected] of [
    ['postgres://u@one,two/callkey?target_session_attrs=read-write', 'postgres://u@one,two/callkey?target_session_attrs=read-write'],
    ['postgresql://u:p@db/callkey?sslmode=require', 'postgres://u:p@db/callkey?sslmode=verify-full'],
    ['postgres://u:p@db/callkey?host=/cloudsql/a:b:c', 'postgres://u:p@%2Fcloudsql%2Fa%3Ab%3Ac/callkey'],
    ['postgres://u:p@/callkey?host=/cloudsql/a:b:c', 'postgres://u:p@%2Fcloudsql%2Fa%3Ab%3Ac/callkey'],
    ['postgres://u@:5433/callkey?host=[::1]', 'postgres://u@[::1]:5433/callkey'],
    ['postgres:///callkey?host=/run/postgresql&user=ada', 'postgres://ada@%2Frun%2Fpostgresql/callkey'],
    ['postgres://db:5432/x?host=one,::1&port=1,2&user=a%40b&password=c%2Fd&dbname=y', 'postgres://a%40b:c%2Fd@one:1,[::1]:2/y'],
    ['postgres://db/callkey?port=6543', 'postgres://db:6543/callkey'],
    ['postgres://a@b:secret@db/callkey', 'postgres://a%40b:secret@db/callkey'],
    ['postgres:///callkey', 'postgres:///callkey'],
  ] as const)
    it(`is ${expected} if DATABASE_URL is ${url}`, () => {
      expect(normalizeUrl(url)).to.equal(expected);
      expect(normalizeUrl(expected)).to.equal(expected);
    });

  for (const [url, error] of [
    ['postgres://u:canary/1@db/callkey', /percent-encoded/],
    ['postgres://u:12/canary@db/callkey', /percent-encoded/],
    ['postgres://u:canary#1@db/callkey', /percent-encoded/],
    ['postgres://u:canary?1@db/callkey', /percent-encoded/],
    ['postgres://u:canary%1@db/callkey', /percent-encoded/],
    ['postgres://u:canary%00@db/callkey', /control characters/],
    ['postgres://u@db/callkey?options=-c canary', /a space as %20/],
    ['postgres://u@db/callkey?port=5432%2Fcanary', /valid host and port/],
    ['postgres://u@one:x,two/callkey', /valid host and port/],
    ['postgres://u:canary@/callkey', /valid host and port/],
    ['postgres://u@one,two/callkey?port=1,2,3', /as many ports as hosts/],
    ['postgres://u@db/callkey?port=canary', /valid host and port/],
    ['postgres://u@db/callkey?target_session_attrs=standby', /target_session_attrs: read-write, primary/],
    ['postgres://u@db/callkey?sslmode=allow', /sslmode: disable/],
    ['postgres://u@db/callkey?ssl=true', /the parameter ssl, which isn't supported/],
    ['postgres://u@db/callkey?user=a&user=b', /user only once/],
    ['postgres://u@db/a%2Fb', /name a database without/],
  ] as const)
    it(`can't be ${url}, and the error doesn't repeat it`, () =>
      expect(() => normalizeUrl(url))
        .to.throw(error)
        .with.property('message')
        .that.does.not.contain('canary'));
});

describe('a PostgreSQL connection', () => {
  itOnPostgres("doesn't begin with a statement after whose failure it would stay open", async () => {
    const url = new URL(await emptyDatabase('postgres'));
    const username = `plain_${randomBytes(4).toString('hex')}`;
    const client = new pg.Client(url.href);
    await client.connect();
    await client.query(`CREATE ROLE ${username} LOGIN PASSWORD 'x'; REVOKE EXECUTE ON FUNCTION version() FROM PUBLIC`);
    await client.end();
    const database = openPostgres(Object.assign(url, { username, password: 'x' }).href);
    const rows = await database.query('SELECT 1 AS one').finally(() => database.close());
    expect(rows).to.deep.equal([{ one: 1 }]);
  });

  it('is closed if the server requires a password and none is set', async () => {
    const request = Buffer.concat([Buffer.from('R\0\0\0\x17\0\0\0\x0a', 'latin1'), Buffer.from('SCRAM-SHA-256\0\0')]);
    const server = createServer((socket) => {
      socket.once('data', () => {
        socket.write(request);
        socket.once('data', (answer) => {
          const nonce = /r=(.+)$/.exec(answer.toString('latin1'))?.[1] ?? '';
          const text = `r=${nonce}server,s=c2FsdA==,i=4096`;
          const head = Buffer.alloc(9);
          head.write('R');
          head.writeUInt32BE(8 + text.length, 1);
          head.writeUInt32BE(11, 5);
          socket.write(Buffer.concat([head, Buffer.from(text)]));
        });
      });
    });
    const { port, close } = await listenHere(server);
    const closed = once(server, 'connection').then(([socket]) => once(socket, 'close'));
    const database = openPostgres(`postgres://user@127.0.0.1:${port}/callkey`);
    const error = await database.query('SELECT 1').then(
      () => expect.fail(),
      (reason: Error) => reason,
    );
    await closed;
    await database.close();
    await close();
    expect(error.message).to.contain('password must be a string');
  });

  it("isn't waited for longer than a few seconds if the server doesn't respond", async () => {
    // If nothing reads from it, a socket doesn't notice that the other side has hung up.
    const { port, close } = await listenHere(createServer((socket) => void socket.resume()));
    const url = `postgres://callkey:hunter2@127.0.0.1:${port}/callkey`;
    const database = openPostgres(url);
    const error: unknown = await database.query('SELECT 1').catch((reason: unknown) => reason);
    await database.close();
    await close();
    expect(isOutage(error)).to.equal(true);
    expect(databaseErrorText(error, { kind: 'postgres', url }))
      .to.contain(': no response.')
      .and.not.contain('hunter2');
  });
});
