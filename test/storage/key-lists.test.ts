import { expect } from 'chai';
import { apiKeyStore } from '../../core/storage/keys/api-keys.ts';
import { type DatabaseKind, onEachDatabase } from '../support/databases.ts';
import { databaseWithTenants, openDirect } from '../support/tenants.ts';

const numbers: Readonly<Record<DatabaseKind, string>> = {
  sqlite: 'WITH RECURSIVE n (i) AS (SELECT 10001 UNION ALL SELECT i + 1 FROM n WHERE i < 13000) SELECT i FROM n',
  postgres: 'SELECT i FROM generate_series(10001, 13000) AS i',
};

describe('the newest keys of an account and of a user', () => {
  onEachDatabase((kind) => {
    it('are read from the indexes of both, without reading all of their keys', async () => {
      const { database, tenants } = await databaseWithTenants(kind);
      await using direct = await openDirect(database);
      const { read, write } = direct.storage.database;
      const { account, siblingAccount, partner, users } = tenants;
      const insert = (prefix: string, creatorId: string, accountId: string) =>
        write.raw(
          `INSERT INTO api_keys (id, digest, name, creator_id, creator_partner_id, account_id, partner_id, created_at)
           SELECT ? || i, ? || i, 'K', ?, ?, ?, ?, i FROM (${numbers[kind]}) AS numbers`,
          [prefix, prefix, creatorId, partner.id, accountId, partner.id],
        );
      await insert('of-account-', users.account.id, account.id);
      await insert('own-elsewhere-', users.tied.id, siblingAccount.id);
      await insert('own-', users.tied.id, account.id);
      await write.raw('ANALYZE');

      const statements: { sql: string; bindings: (string | number)[] }[] = [];
      direct.storage.database.lanes.lists.read.on('query', (query) => statements.push(query));
      const visibility = { kind: 'account', accountId: account.id, userId: users.tied.id } as const;
      const store = apiKeyStore(direct.storage.database.lanes);
      const { apiKeys } = await store.list(visibility, 5);
      expect(apiKeys.map(({ id }) => id)).to.deep.equal([
        ...['own-elsewhere-13000', 'own-13000', 'of-account-13000'],
        ...['own-elsewhere-12999', 'own-12999'],
      ]);
      const list = statements.find(({ sql }) => sql.includes('creator_name'));
      const explain = `EXPLAIN ${kind === 'sqlite' ? 'QUERY PLAN ' : ''}${list?.sql.replaceAll(/\$\d+/g, '?')}`;
      const plan = JSON.stringify(await read.raw(explain, list?.bindings ?? []));
      expect(plan)
        .to.match(/api_keys_by_account/)
        .and.to.match(/api_keys_by_creator\b/);
      expect(plan).to.not.match(/Seq Scan on api_keys|SCAN k\b|MULTI-INDEX OR/);
    });
  });
});
