import { expect } from 'chai';
import { ConfigError } from '../../core/server/start/config.ts';
import { openCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { createKey, onDemand, placeCall, signIn } from '../support/tenants.ts';

describe('an upgrade', () => {
  onEachDatabase((kind) => {
    it("by a newer core that only adds to the schema keeps a running core working, but doesn't let an older core start", async () => {
      const { core, database, direct, tenants, close } = await openCore({ kind });
      const cookie = await signIn(core.url, 'ada@example.com');
      const { keyValue } = await createKey(core.url, cookie);
      /** Places, cancels and lists. @returns the status of each response */
      const use = async () => {
        const placed = await placeCall(core.url, tenants.campaign.id, keyValue);
        const gone = await ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/${textAt(placed, 'contactId')}`, { key: keyValue });
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
      const refused: unknown = await startCoreHere(database).catch((error) => error);
      expect(refused).to.be.instanceOf(ConfigError);
      expect(String(refused)).to.match(
        /: DATABASE_URL: [^\n]*migrated by a newer version of Callkey \(migrations: 999-of-a-later-release\)\. Use that version or a later one\.$/,
      );
      await close();
    });
  });
});
