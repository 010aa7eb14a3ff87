import { expect } from 'chai';
import { ConfigError } from '../../core/server/start/config.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { createKey, databaseWithTenants, onDemand, openDirect, placeCall, signIn } from '../support/tenants.ts';

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
