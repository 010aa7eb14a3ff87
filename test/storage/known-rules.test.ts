import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { instant } from '../../core/domain/instant.ts';
import { setHours } from '../../core/domain/protection/rules.ts';
import { knownRules } from '../../core/storage/protection/known.ts';
import { onEachDatabase } from '../support/databases.ts';
import { tenantsOnce } from '../support/tenants.ts';

describe('the calling rules of more campaigns than a process remembers', () => {
  onEachDatabase((kind) => {
    const { direct, tenants } = tenantsOnce(kind);
    it('are all applied correctly in one claim and in the next, and are parsed once', async () => {
      const { write } = direct.storage.database;
      const hours = [{ prefix: '', date: '2026-12-25', closed: true as const }];
      await setHours(direct.ports, operator, { scope: 'partner', id: tenants.partner.id }, hours);
      const calls = Array.from({ length: 10_001 }, (_, n) => ({ campaign_id: `campaign-${n}`, account_id: tenants.account.id }));
      const rows = calls.map(({ campaign_id: id, account_id }) => ({ id, account_id, name: id, created_at: instant(1), settings: null }));
      await write.batchInsert('campaigns', rows, 200);
      const rules = knownRules(direct.storage.database);
      for (const claim of ['first', 'second']) {
        const { rulesFor } = await write.transaction((trx) => rules.current(calls, trx));
        const wrong = calls.filter(({ campaign_id }) => JSON.stringify(rulesFor(campaign_id).hours) !== JSON.stringify(hours));
        expect(wrong, claim).to.deep.equal([]);
        expect(new Set(calls.map(({ campaign_id }) => rulesFor(campaign_id).hours)).size, claim).to.equal(1);
      }
    });
  });
});
