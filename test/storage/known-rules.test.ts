import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { setHours } from '../../core/domain/protection/rules.ts';
import { knownRules } from '../../core/storage/protection/known.ts';
import { onEachDatabase } from '../support/databases.ts';
import { databaseWithTenants, openDirect } from '../support/tenants.ts';

describe('the calling rules of more campaigns than a process remembers', () => {
  onEachDatabase((kind) => {
    it('are all applied correctly in one claim and in the next, and are parsed once', async () => {
      const { database, tenants } = await databaseWithTenants(kind);
      const { ports, storage, close } = await openDirect(database);
      try {
        const hours = [{ prefix: '', date: '2026-12-25', closed: true as const }];
        await setHours(ports, operator, { scope: 'partner', id: tenants.partner.id }, hours);
        const calls = Array.from({ length: 10_001 }, (_, n) => ({ campaign_id: `campaign-${n}`, account_id: tenants.account.id }));
        const rows = calls.map(({ campaign_id: id, account_id }) => ({
          id,
          account_id,
          name: id,
          created_at: ports.clock.now(),
          settings: null,
        }));
        const { write } = storage.database;
        for (let start = 0; start < rows.length; start += 200) await write('campaigns').insert(rows.slice(start, start + 200));
        const rules = knownRules(storage.database);
        for (const claim of ['first', 'second']) {
          const { rulesFor } = await write.transaction((trx) => rules.current(calls, trx));
          const wrong = calls.filter(({ campaign_id }) => JSON.stringify(rulesFor(campaign_id).hours) !== JSON.stringify(hours));
          expect(wrong, claim).to.deep.equal([]);
          expect(new Set(calls.map(({ campaign_id }) => rulesFor(campaign_id).hours)).size, claim).to.equal(1);
        }
      } finally {
        await close();
      }
    });
  });
});
