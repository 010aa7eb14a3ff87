import { expect } from 'chai';
import { runScript } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { emptyDatabase } from '../support/databases.ts';
import { signIn } from '../support/tenants.ts';

describe('the demo', () => {
  it('fills an empty database, and prints the address that PORT sets', async () => {
    const database = await emptyDatabase('sqlite');
    const { stdout } = await runScript('scripts/demo.ts', [], { env: { DATABASE_URL: database, PORT: '18180' } });
    expect(stdout).to.contain('export CALLKEY_SERVER=http://127.0.0.1:18180\n').and.not.contain(':8080');
    const core = await startCoreHere(database);
    const cookie = await signIn(core.url, 'sam@callkey.example', /password (\S+)'/.exec(stdout)?.[1] ?? '');
    await core.close();
    expect(cookie).to.contain('callkey_session_');
  });

  it('refuses a database that already has users', async () => {
    const database = await emptyDatabase('sqlite');
    await runScript('scripts/demo.ts', [], { env: { DATABASE_URL: database } });
    const again = await runScript('scripts/demo.ts', [], { env: { DATABASE_URL: database } });
    expect([again.code, again.stdout]).to.deep.equal([1, '']);
    expect(again.stderr).to.contain('already has users');
  });
});
