import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runScript } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { emptyDatabase, freshDatabase, freshDirectory } from '../support/databases.ts';
import { createKey, createTenants, openDirect, placeCall, signIn } from '../support/tenants.ts';

describe('backup', () => {
  it('copies a SQLite database that is being written to, and the copy serves', async () => {
    const database = await freshDatabase('sqlite');
    const core = await startCoreHere(database);
    const direct = await openDirect(database);
    const tenants = await createTenants(direct.ports);
    const { keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com'));
    let placed = 0;
    let isBusy = true;
    const load = (async () => {
      while (isBusy) if ((await placeCall(core.url, tenants.campaign.id, keyValue)).status === 202) placed++;
    })();
    const file = join(freshDirectory(), 'backup.db');
    const { code } = await runScript('core/admin.ts', ['backup', file], { env: { DATABASE_URL: database } });
    isBusy = false;
    await load;
    await core.close();
    await direct.close();
    expect(code).to.equal(0);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const restored = await startCoreHere(`sqlite:${file}`);
    const answer = await placeCall(restored.url, tenants.campaign.id, keyValue);
    const { stdout } = await runScript('core/admin.ts', ['check', '--json'], { env: { DATABASE_URL: `sqlite:${file}` } });
    await restored.close();
    expect(answer.status).to.equal(202);
    expect(JSON.parse(stdout).ok).to.equal(true);
    expect(placed).to.be.greaterThan(0);
  });

  it('neither makes nor changes the database that it is to copy', async () => {
    const database = await emptyDatabase('sqlite');
    const directory = freshDirectory();
    const { code, stderr } = await runScript('core/admin.ts', ['backup', join(directory, 'b.db')], { env: { DATABASE_URL: database } });
    expect([code, stderr.includes('There is no database')]).to.deep.equal([3, true]);
    expect(readdirSync(directory)).to.deep.equal([]);
    expect(existsSync(database.slice('sqlite:'.length))).to.equal(false);
  });

  it('never writes over a file', async () => {
    const database = await freshDatabase('sqlite');
    await runScript('core/admin.ts', ['migrate'], { env: { DATABASE_URL: database } });
    const file = join(freshDirectory(), 'there-already');
    writeFileSync(file, 'precious');
    const { code } = await runScript('core/admin.ts', ['backup', file], { env: { DATABASE_URL: database } });
    expect([code, statSync(file).size]).to.deep.equal([4, 8]);
  });
});
