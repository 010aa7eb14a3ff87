import { expect } from 'chai';
import { createApiKey, digestOf, revokeApiKey } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit.ts';
import { placeCall } from '../../core/domain/calls.ts';
import type { User } from '../../core/domain/model.ts';
import { fakeClock } from '../support/clock.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { callerOf, createTenants, type DirectAccess, openDirect, somePhone, type Tenants } from '../support/tenants.ts';

describe('requests that share a statement', () => {
  onEachDatabase((kind) => {
    let direct: DirectAccess;
    let tenants: Tenants;

    before(async () => {
      direct = await openDirect(await freshDatabase(kind), fakeClock());
      tenants = await createTenants(direct.ports);
    });
    after(() => direct.close());

    const viewerOf = (user: User) => ({ ...user, tenancy: null });
    const createKey = async (user: User) => {
      const input = { name: 'A key', expiration: { kind: 'none' }, timeZone: 'Europe/Berlin' } as const;
      const { apiKey, keyValue } = await createApiKey(direct.ports, viewerOf(user), operator, input);
      return { id: apiKey.id, digest: digestOf(keyValue) };
    };
    const request = (digest: Awaited<ReturnType<typeof createKey>>['digest']) => ({
      ...callerOf(digest),
      campaignId: tenants.campaign.id,
      at: direct.ports.clock.millis(),
    });

    it('to cancel one call get each the answer of their own key', async () => {
      const { account, teammate, other } = tenants.users;
      const [placing, colleague, revoked, elsewhere] = await Promise.all([account, teammate, account, other].map(createKey));
      if (!placing || !colleague || !revoked || !elsewhere) throw new Error('A key is missing.');
      const input = { contact: { phone: somePhone() } };
      const { contactId } = await placeCall(direct.ports, callerOf(placing.digest), tenants.campaign.id, input);
      await revokeApiKey(direct.ports, viewerOf(account), operator, revoked.id, false);
      const { cancel } = direct.ports.stores.calls;
      const keys = [elsewhere, placing, revoked, colleague, elsewhere];
      const kinds = (await Promise.all(keys.map(({ digest }) => cancel(request(digest), { contactId })))).map((answer) => answer.kind);
      expect(kinds).to.deep.equal(['campaign-refused', 'cancelled', 'unauthorized', 'cancelled', 'campaign-refused']);
    });
  });
});
