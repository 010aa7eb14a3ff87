import { expect } from 'chai';
import { auditEvent, operator, userSubject } from '../../../core/domain/audit/audit.ts';
import type { User } from '../../../core/domain/model.ts';
import { type CoreHarness, openCore } from '../../support/core.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { ask } from '../../support/http.ts';
import { signIn, type Tenants } from '../../support/tenants.ts';

type Name = keyof Tenants['users'];
const everyone: readonly Name[] = ['account', 'teammate', 'sibling', 'partner', 'tied', 'other', 'otherPartner', 'staff'];

/** The users whom each viewer can unlink. No one can unlink themselves. */
const unlinks: Readonly<Record<Name, readonly Name[] | 'forbidden'>> = {
  account: 'forbidden',
  teammate: 'forbidden',
  sibling: 'forbidden',
  other: 'forbidden',
  partner: ['account', 'teammate', 'sibling', 'tied'],
  tied: ['account', 'teammate'],
  otherPartner: ['other'],
  // Without a selected account or partner, staff manage only other staff, and there are none here.
  staff: [],
};

describe('unlinking a user', () => {
  onEachDatabase((kind) => {
    let harness: CoreHarness;
    before(async () => {
      harness = await openCore({ kind });
    });
    after(() => harness.close());

    async function link(user: User): Promise<void> {
      const { ports } = harness.direct;
      const event = auditEvent(ports, operator.actor, 'user.linked', userSubject(user), null);
      const subject = { issuer: 'https://login.example.com', subject: user.id };
      await ports.stores.links.create(user, subject, true, event);
    }

    for (const viewer of everyone) {
      it(`by the user "${viewer}" is refused unless they manage the other user`, async () => {
        const { core, tenants } = harness;
        const allowed = unlinks[viewer];
        for (const name of everyone) {
          const target = tenants.users[name];
          await link(target);
          const cookie = await signIn(core.url, tenants.users[viewer].email);
          const { status } = await ask('DELETE', `${core.url}/console/users/${target.id}/link`, { cookie, body: {} });
          const expected = allowed === 'forbidden' ? 403 : name === viewer ? 409 : allowed.includes(name) ? 204 : 404;
          expect(status, name).to.equal(expected);
          const { json } = await ask('DELETE', `${core.url}/console/users/${target.id}/link`, { cookie, body: {} });
          if (status === 204) expect(json['status']).to.equal(409);
        }
      });
    }
  });
});
