import { expect } from 'chai';
import { operator, userEvent } from '../../core/domain/audit/audit.ts';
import type { CheckedCode } from '../../core/domain/ports.ts';
import { onEachDatabase } from '../support/databases.ts';
import { tenantsOnce } from '../support/tenants.ts';

describe('recovery codes in the database', () => {
  onEachDatabase((kind) => {
    const { direct, tenants } = tenantsOnce(kind);
    it('are replaced by only one of two concurrent renewals, even if one uses a code from the app and the other a recovery code', async () => {
      const { ports, storage } = direct;
      const { users } = tenants;
      const { id } = users.account;
      const { secondFactors } = ports.stores;
      const event = () => userEvent(ports, operator.actor, 'recovery-codes.renewed', users.account);
      await secondFactors.enroll({ id }, 'sealed');
      const first = ['a', 'b', 'c', 'd'];
      await secondFactors.confirm(id, { secret: 'sealed', step: 0, recoveryDigests: first, at: ports.clock.now() }, event());
      const codes = () => storage.database.read('recovery_codes').where({ user_id: id }).orderBy('digest').pluck('digest');
      for (let round = 1; round <= 20; round++) {
        const [usable = ''] = await codes();
        const renew = (code: CheckedCode, name: string) =>
          secondFactors.renew(
            id,
            code,
            first.map((each) => `${name} ${round} ${each}`),
            event(),
          );
        await Promise.all([renew({ kind: 'step', step: round }, 'app'), renew({ kind: 'recovery', digest: usable }, 'recovery')]);
        const renewals = new Set((await codes()).map((each: string) => each.slice(0, -2)));
        expect([...renewals], `round ${round}`).to.have.length(1);
      }
    });
  });
});
