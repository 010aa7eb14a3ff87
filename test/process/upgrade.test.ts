import { expect } from 'chai';
import { ConfigError } from '../../core/server/start/config.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase, toUnreleased } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { createKey, databaseWithTenants, onDemand, openDirect, placeCall, signIn } from '../support/tenants.ts';

const hasMigrated = ({ log }: RunningCore) => log.some(({ msg }) => msg === 'schema migrated');

describe('an upgrade', () => {
  onEachDatabase((kind) => {
    let url: string;
    let direct: Awaited<ReturnType<typeof openDirect>>;
    let core: RunningCore;
    let campaignId: string;
    let cookie: string;
    let keyValue: string;
    beforeEach(async () => {
      const { database, tenants } = await databaseWithTenants(kind);
      url = database;
      campaignId = tenants.campaign.id;
      direct = await openDirect(url);
      core = await startCoreHere(url);
      cookie = await signIn(core.url, 'ada@example.com');
      ({ keyValue } = await createKey(core.url, cookie));
    });
    afterEach(() => direct.close());

    it('works with two cores that start at the same time on an earlier schema: one migrates it, and both serve requests', async () => {
      await core.close();
      await toUnreleased(direct.storage.database);
      const cores = await Promise.all([startCoreHere(url), startCoreHere(url)]);
      expect(cores.filter(hasMigrated)).to.have.length(1);
      const [here, there] = cores;
      const placed = await placeCall(here.url, campaignId, keyValue);
      const gone = await ask('DELETE', `${onDemand(there.url, campaignId)}/${textAt(placed, 'contactId')}`, { key: keyValue });
      expect({ placed: placed.status, gone: gone.status }).to.deep.equal({ placed: 202, gone: 200 });
      for (const each of cores) {
        expect((await ask('GET', `${each.managementUrl}/readyz`)).status).to.equal(200);
        await each.close();
      }
    });

    it("by a newer core that only adds to the schema keeps a running core working, but doesn't let an older core start", async () => {
      /** Places, cancels and lists. @returns the status of each response */
      const use = async () => {
        const placed = await placeCall(core.url, campaignId, keyValue);
        const gone = await ask('DELETE', `${onDemand(core.url, campaignId)}/${textAt(placed, 'contactId')}`, { key: keyValue });
        const keys = await ask('GET', `${core.url}/console/api-keys`, { cookie });
        const ready = await ask('GET', `${core.managementUrl}/readyz`);
        return [placed, gone, keys, ready].map(({ status }) => status);
      };
      const works = [202, 200, 200, 200];
      expect(await use()).to.deep.equal(works);
      const { write } = direct.storage.database;
      for (const table of ['calls', 'api_keys', 'users', 'sessions', 'campaigns', 'audit_events'])
        await write.raw(`ALTER TABLE ${table} ADD COLUMN with_default text NOT NULL DEFAULT 'x' CHECK (with_default <> '')`);
      await write('schema_migrations').insert({ name: '999-of-a-later-release' });
      expect(await use()).to.deep.equal(works);
      const refused: unknown = await startCoreHere(url).catch((error) => error);
      expect(refused).to.be.instanceOf(ConfigError);
      expect(String(refused)).to.match(
        /: DATABASE_URL: [^\n]*migrated by a newer version of Callkey \(migrations: 999-of-a-later-release\)\. Use that version or a later one\.$/,
      );
      await core.close();
    });
  });
});
