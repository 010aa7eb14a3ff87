import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { digestOf } from '../../core/domain/api-keys.ts';
import { parseDatabaseUrl } from '../../core/storage/database.ts';
import { openDatabase } from '../../core/storage/open.ts';
import { type CoreProcess, spawnCore, testSecret } from '../support/core.ts';
import { emptyDatabase, freshDatabase, onEachDatabase } from '../support/databases.ts';
import { migrateToRelease } from '../support/earlier-schema.ts';
import { failToStart } from '../support/failed-start.ts';
import { ask, textAt } from '../support/http.ts';
import { createKey, createTenants, onDemand, openDirect, placeCall, signIn } from '../support/tenants.ts';

const key = makeKeyValue(randomBytes);

/** A database of the release before, with a key that may place calls in the campaign. */
async function previousRelease(url: string): Promise<void> {
  const location = parseDatabaseUrl(url);
  if (!location) throw new Error('The database has no address.');
  const database = openDatabase(location, 'make');
  const { write } = database;
  await migrateToRelease(database, '0.1.0');
  const partner = { partner_id: 'partner', name: 'x', created_at: 1 };
  const account = { ...partner, account_id: 'account' };
  await write('partners').insert({ id: 'partner', name: 'x', created_at: 1 });
  await write('accounts').insert({ ...partner, id: 'account' });
  await write('campaigns').insert({ id: 'campaign', account_id: 'account', name: 'x', created_at: 1 });
  await write('users').insert({ ...account, id: 'user', email: 'ada@example.com', user_type: 'account', password_hash: '' });
  await write('api_keys').insert({ ...account, id: 'key', digest: digestOf(key), creator_id: 'user', creator_partner_id: 'partner' });
  await database.close();
}

const hasMigrated = ({ stdout }: CoreProcess) => stdout.some((line) => line.includes('"schema migrated"'));

describe('an upgrade', () => {
  onEachDatabase((kind) => {
    it('starts two cores at once on the schema of the release before: one migrates it, and both serve', async () => {
      const url = await emptyDatabase(kind);
      await previousRelease(url);
      const cores = await Promise.all([spawnCore(url), spawnCore(url)]);
      expect(cores.filter(hasMigrated)).to.have.length(1);
      const [here, there] = cores;
      const placed = await placeCall(here.url, 'campaign', key);
      const gone = await ask('DELETE', `${onDemand(there.url, 'campaign')}/${textAt(placed, 'contactId')}`, { key });
      expect([placed.status, gone.status]).to.deep.equal([202, 200]);
      for (const core of cores) {
        expect((await ask('GET', `${core.managementUrl}/readyz`)).status).to.equal(200);
        expect(await core.stop()).to.equal(0);
      }
    });

    it('lets an older core go on beneath which a newer one adds to the schema, and no older one start', async () => {
      const url = await freshDatabase(kind);
      const core = await spawnCore(url);
      const direct = await openDirect(url);
      const { campaign } = await createTenants(direct.ports);
      const cookie = await signIn(core.url, 'ada@example.com');
      const { keyValue } = await createKey(core.url, cookie);
      const works = async () => {
        const placed = await placeCall(core.url, campaign.id, keyValue);
        const gone = await ask('DELETE', `${onDemand(core.url, campaign.id)}/${textAt(placed, 'contactId')}`, { key: keyValue });
        const keys = await ask('GET', `${core.url}/console/api-keys`, { cookie });
        const calls = await ask('GET', `${core.url}/console/campaigns/${campaign.id}/calls`, { cookie });
        const ready = await ask('GET', `${core.managementUrl}/readyz`);
        return [placed, gone, keys, calls, ready].map(({ status }) => status);
      };
      expect(await works()).to.deep.equal([202, 200, 200, 200, 200]);
      const { write } = direct.storage.database;
      for (const table of ['calls', 'api_keys', 'users', 'sessions', 'campaigns'])
        await write.raw(`ALTER TABLE ${table} ADD COLUMN of_a_later_release text`);
      await write('schema_migrations').insert({ name: '999-of-a-later-release', batch: 999, migration_time: new Date() });
      await direct.close();
      expect(await works()).to.deep.equal([202, 200, 200, 200, 200]);
      const { status, stderr } = failToStart({ DATABASE_URL: url, SESSION_SECRETS: testSecret });
      expect(status).to.equal(1);
      expect(stderr).to.match(
        /^DATABASE_URL: [^\n]*newer than this program \(it has 999-of-a-later-release\)\. Run the newer version\.\n$/,
      );
      expect(await core.stop()).to.equal(0);
    });
  });
});
