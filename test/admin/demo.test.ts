import { expect } from 'chai';
import { runScript } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { emptyDatabase } from '../support/databases.ts';
import { signIn } from '../support/tenants.ts';

describe('the demo', () => {
  it('fills an empty database, prints the address that PORT sets, and refuses a database that already has users', async () => {
    const database = await emptyDatabase('sqlite');
    const run = () => runScript('scripts/demo.ts', [], { env: { DATABASE_URL: database, PORT: '18180' } });
    const { stdout } = await run();
    expect(stdout).to.contain('export CALLKEY_SERVER=http://127.0.0.1:18180\n').and.not.contain(':8080');
    const core = await startCoreHere(database);
    const cookie = await signIn(core.url, 'sam@callkey.example', /password (\S+)'/.exec(stdout)?.[1] ?? '');
    await core.close();
    expect(cookie).to.contain('callkey_session_');
    const again = await run();
    expect([again.code, again.stdout]).to.deep.equal([1, '']);
    expect(again.stderr).to.contain('already has users');
  });
});
