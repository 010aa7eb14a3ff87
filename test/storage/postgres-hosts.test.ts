import { expect } from 'chai';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { databaseErrorText } from '../../core/storage/engine/error-text.ts';
import { addressesOf } from '../../core/storage/engine/postgres/postgres-hosts.ts';

describe('a PostgreSQL address with several hosts', () => {
  it('is split into one address per host', () => {
    expect(addressesOf('postgres://u:p%40,x@one:5432,two,[::1]:5433/callkey?sslmode=verify-full')).to.deep.equal([
      'postgres://u:p%40,x@one:5432/callkey?sslmode=verify-full',
      'postgres://u:p%40,x@two/callkey?sslmode=verify-full',
      'postgres://u:p%40,x@[::1]:5433/callkey?sslmode=verify-full',
    ]);
    expect(addressesOf('postgres:///callkey')).to.deep.equal(['postgres:///callkey']);
  });

  it("is refused if one of its hosts can't be queried, or if it asks for anything but the writable host", () => {
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
