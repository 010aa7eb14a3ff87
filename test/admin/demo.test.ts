import { expect } from 'chai';
import { runScript } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { emptyDatabase } from '../support/databases.ts';
import { placeCall, signIn } from '../support/tenants.ts';

describe('the demo', () => {
  it('fills an empty database, and its first example call works as printed', async () => {
    const database = await emptyDatabase('sqlite');
    const demo = await runScript('scripts/demo.ts', [], { env: { DATABASE_URL: database, PORT: '18180' } });
    expect(demo.code).to.equal(0);
    expect(demo.stdout)
      .to.contain('PORT=18180 DIALER=simulated npm start')
      .and.contain('http://127.0.0.1:18180\n')
      .and.not.contain(':8080');
    const key = /CALLKEY_API_KEY=(\S+)/.exec(demo.stdout)?.[1] ?? '';
    const campaign = /CAMPAIGN=(\S+)/.exec(demo.stdout)?.[1] ?? '';
    const body = /-d '(\{.*\})'/.exec(demo.stdout)?.[1] ?? '';
    const core = await startCoreHere(database);
    expect((await placeCall(core.url, campaign, key, JSON.parse(body))).status).to.equal(202);
    const cookie = await signIn(core.url, 'sam@callkey.example', /password {2}(\S+)/.exec(demo.stdout)?.[1] ?? '');
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
