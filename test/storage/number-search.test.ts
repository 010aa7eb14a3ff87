import { expect } from 'chai';
import { doNotCallStore } from '../../core/storage/protection/do-not-call.ts';
import { type DatabaseKind, onEachDatabase } from '../support/databases.ts';
import { databaseWithTenants, openDirect } from '../support/tenants.ts';

const numbers: Readonly<Record<DatabaseKind, string>> = {
  sqlite: 'WITH RECURSIVE n (i) AS (SELECT 10001 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) SELECT i FROM n',
  postgres: 'SELECT i FROM generate_series(10001, 30000) AS i',
};

/** The lower bounds in the index, on the first page and after a cursor. */
const bounds: Readonly<Record<DatabaseKind, { account: [first: string, next: string]; partner: [first: string, next: string] }>> = {
  sqlite: {
    account: ['do_not_call_numbers (scope_id=? AND phone>?', 'do_not_call_numbers (scope_id=? AND phone>?'],
    partner: ['do_not_call_of_partner_by_number (partner_id=? AND phone>?', '(partner_id=? AND (phone,id)>(?,?)'],
  },
  postgres: {
    account: ["(phone >= '+49'", "(phone > '+4929950'"],
    partner: ["(phone >= '+49'", "(ROW(phone, id) > ROW('+4929950'"],
  },
};

describe('a search by the start of a number', () => {
  onEachDatabase((kind) => {
    it('reads only a page of a long list, from its index by number', async () => {
      const { database, tenants } = await databaseWithTenants(kind);
      await using direct = await openDirect(database);
      const { read, write } = direct.storage.database;
      const [accountId, partnerId] = [tenants.account.id, tenants.partner.id];
      await write.raw(
        `INSERT INTO do_not_call (id, scope_id, phone, account_id, partner_id, reason, source, created_at)
         SELECT 'n' || i, CASE WHEN i % 2 = 0 THEN ? ELSE ? END, '+49' || i, CASE WHEN i % 2 = 0 THEN ? END, ?, 'asked', 'admin', 0
         FROM (${numbers[kind]}) AS numbers`,
        [accountId, partnerId, accountId, partnerId],
      );
      await write.raw('ANALYZE do_not_call');
      const statements: { sql: string; bindings: (string | number)[] }[] = [];
      direct.storage.database.lanes.lists.read.on('query', (query) => statements.push(query));
      const store = doNotCallStore(direct.storage.database.lanes);
      const lists = [
        { access: { kind: 'account', accountId }, expected: [29_952, 29_954] },
        { access: { kind: 'partner', partnerId }, expected: [29_951, 29_952] },
      ] as const;
      for (const { access, expected } of lists) {
        for (const cursor of [null, { phone: '+4929950', id: 'n29950' }]) {
          statements.length = 0;
          const entries = await store.searchNumbers(access, '+49', cursor, 2);
          if (cursor) expect(entries.map(({ id }) => id)).to.deep.equal(expected.map((number) => `n${number}`));
          const search = statements.find(({ sql }) => sql.includes('do_not_call'));
          const explain = `EXPLAIN ${kind === 'sqlite' ? 'QUERY PLAN ' : ''}${search?.sql.replaceAll(/\$\d+/g, '?')}`;
          const plan = JSON.stringify(await read.raw(explain, search?.bindings ?? []));
          expect(plan)
            .to.contain(bounds[kind][access.kind][cursor ? 1 : 0])
            .and.not.match(/Sort|ORDER BY/);
          expect(plan).to.contain(access.kind === 'account' ? 'do_not_call_numbers' : 'do_not_call_of_partner_by_number');
        }
      }
    });
  });
});
