import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect } from 'chai';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { databaseErrorText } from '../../core/storage/engine/error-text.ts';
import { openPostgres } from '../../core/storage/engine/postgres/postgres.ts';
import { parseAddresses } from '../../core/storage/engine/postgres/postgres-hosts.ts';

describe('a PostgreSQL address with several hosts', () => {
  it('is split into one address per host', () => {
    expect(parseAddresses('postgres://u:p%40,x@one:5432,two,[::1]:5433/callkey?sslmode=verify-full')).to.deep.equal([
      'postgres://u:p%40,x@one:5432/callkey?sslmode=verify-full',
      'postgres://u:p%40,x@two/callkey?sslmode=verify-full',
      'postgres://u:p%40,x@[::1]:5433/callkey?sslmode=verify-full',
    ]);
    expect(parseAddresses('postgres:///callkey')).to.deep.equal(['postgres:///callkey']);
  });

  it("is refused if one of its hosts can't be used, or if it asks for anything but the writable host", () => {
    for (const good of ['', '?target_session_attrs=read-write', '?target_session_attrs=primary'])
      expect(parseDatabaseUrl(`postgres://u@one,two/callkey${good}`)?.kind).to.equal('postgres');
    for (const bad of [
      'u@one:x,two/callkey',
      'u@one,two/callkey?target_session_attrs=standby',
      'u@one,two/callkey?target_session_attrs=any',
    ])
      expect(parseDatabaseUrl(`postgres://${bad}`), bad).to.equal(undefined);
  });

  it('shows its hosts in errors, but not its password', () => {
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    const text = databaseErrorText(refused, { kind: 'postgres', url: 'postgres://u:secret@one:1,two/callkey' });
    expect(text).to.contain('callkey at one:1, two');
    expect(text).not.to.contain('secret');
  });
});

describe('a PostgreSQL connection', () => {
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
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const closed = once(server, 'connection').then(([socket]) => once(socket, 'close'));
    const { port } = server.address() as AddressInfo;
    const database = openPostgres(`postgres://user@127.0.0.1:${port}/callkey`);
    const error = await database.query('SELECT 1').then(
      () => expect.fail(),
      (reason: Error) => reason,
    );
    await closed;
    await database.close();
    server.close();
    expect(error.message).to.contain('password must be a string');
  });
});
