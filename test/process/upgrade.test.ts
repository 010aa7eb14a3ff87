import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { toDigest } from '../../core/domain/api-keys.ts';
import { instant } from '../../core/domain/instant.ts';
import { ConfigError } from '../../core/server/start/config.ts';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openDatabase } from '../../core/storage/engine/open.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { emptyDatabase, onEachDatabase } from '../support/databases.ts';
import { migrateToRelease } from '../support/earlier-schema.ts';
import { ask, textAt } from '../support/http.ts';
import { createKey, databaseWithTenants, onDemand, openDirect, placeCall, signIn } from '../support/tenants.ts';

const key = makeKeyValue(randomBytes);

/** Creates a database as the previous release did, with a key that can place calls in the campaign. */
async function previousRelease(url: string): Promise<void> {
  const location = parseDatabaseUrl(url);
  const database = openDatabase(location, 'make');
  const { write } = database;
  await migrateToRelease(database, '0.1.0');
  const partner = { partner_id: 'partner', name: 'x', created_at: instant(1) };
  const account = { ...partner, account_id: 'account' };
  await write('partners').insert({ id: 'partner', name: 'x', created_at: instant(1) });
  await write('accounts').insert({ ...partner, id: 'account' });
  await write('campaigns').insert({ id: 'campaign', account_id: 'account', name: 'x', created_at: instant(1) });
  await write('users').insert({ ...account, id: 'user', email: 'ada@example.com', user_type: 'account', password_hash: '' });
  await write('api_keys').insert({ ...account, id: 'key', digest: toDigest(key), creator_id: 'user', creator_partner_id: 'partner' });
  await database.close();
}

const hasMigrated = ({ log }: RunningCore) => log.some(({ msg }) => msg === 'schema migrated');

describe('an upgrade', () => {
  onEachDatabase((kind) => {
    it("works with two cores that start at the same time on the previous release's schema: one migrates it, and both serve requests", async () => {
      const url = await emptyDatabase(kind);
      await previousRelease(url);
      const cores = await Promise.all([startCoreHere(url), startCoreHere(url)]);
      expect(cores.filter(hasMigrated)).to.have.length(1);
      const [here, there] = cores;
      const placed = await placeCall(here.url, 'campaign', key);
      const gone = await ask('DELETE', `${onDemand(there.url, 'campaign')}/${textAt(placed, 'contactId')}`, { key });
      expect({ placed: placed.status, gone: gone.status }).to.deep.equal({ placed: 202, gone: 200 });
      for (const core of cores) {
        expect((await ask('GET', `${core.managementUrl}/readyz`)).status).to.equal(200);
        await core.close();
      }
    });

    describe('by a newer core that has added to the schema', () => {
      let url: string;
      let core: RunningCore;
      let direct: Awaited<ReturnType<typeof openDirect>>;
      let campaignId: string;
      let cookie: string;
      let keyValue: string;
      beforeEach(async () => {
        const { database, tenants } = await databaseWithTenants(kind);
        url = database;
        campaignId = tenants.campaign.id;
        core = await startCoreHere(url);
        direct = await openDirect(url);
        cookie = await signIn(core.url, 'ada@example.com');
        ({ keyValue } = await createKey(core.url, cookie));
      });
      afterEach(() => direct.close());

      /** Places, cancels and lists. @returns the status of each response */
      const use = async () => {
        const placed = await placeCall(core.url, campaignId, keyValue);
        const gone = await ask('DELETE', `${onDemand(core.url, campaignId)}/${textAt(placed, 'contactId')}`, { key: keyValue });
        const created = await ask('POST', `${core.url}/console/api-keys`, {
          cookie,
          body: { name: 'Another', expiration: { kind: 'none' }, timeZone: 'Europe/Dublin' },
        });
        const keys = await ask('GET', `${core.url}/console/api-keys`, { cookie });
        const calls = await ask('GET', `${core.url}/console/campaigns/${campaignId}/calls`, { cookie });
        const ready = await ask('GET', `${core.managementUrl}/readyz`);
        return [placed, gone, created, keys, calls, ready].map(({ status }) => status);
      };

      /** Changes that the operations page calls additive. */
      const addTo = async (name: string) => {
        const { write } = direct.storage.database;
        for (const table of ['calls', 'api_keys', 'users', 'sessions', 'campaigns', 'audit_events']) {
          await write.raw(`ALTER TABLE ${table} ADD COLUMN optional text`);
          await write.raw(`ALTER TABLE ${table} ADD COLUMN with_default text NOT NULL DEFAULT 'x' CHECK (with_default <> '')`);
          await write.raw(`CREATE INDEX later_${table} ON ${table} (optional)`);
        }
        await write.raw('CREATE TABLE added (id text PRIMARY KEY, user_id text REFERENCES users (id) ON DELETE CASCADE)');
        await write.raw('CREATE VIEW looked_at AS SELECT contact_id, state FROM calls');
        await write('schema_migrations').insert({ name, batch: 999, migration_time: new Date() });
      };
      const works = [202, 200, 201, 200, 200, 200];

      it("keeps a running older core working, but doesn't let an older core start", async () => {
        expect(await use()).to.deep.equal(works);
        await addTo('999-of-a-later-release');
        expect(await use()).to.deep.equal(works);
        const refused: unknown = await startCoreHere(url).catch((error) => error);
        expect(refused).to.be.instanceOf(ConfigError);
        expect(String(refused)).to.match(
          /: DATABASE_URL: [^\n]*migrated by a newer version of Callkey \(migrations: 999-of-a-later-release\)\. Use that version or a later one\.$/,
        );
        await core.close();
      });

      it('lets an older core start if the migration is named additive, and logs one line', async () => {
        await addTo('999-of-a-later-release-additive');
        await core.close();
        core = await startCoreHere(url);
        expect(await use()).to.deep.equal(works);
        const logLines = core.log.filter((line) => JSON.stringify(line).includes('999-of-a-later-release-additive'));
        expect(logLines.map(({ msg }) => msg)).to.deep.equal(['a newer release has extended the database; this older core works with it']);
        await core.close();
      });
    });
  });
});
