import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { apiKeyDetailsSchema } from '#contract/console/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { changeUser } from '../../core/domain/directory/users.ts';
import { openCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

describe('a key whose creator has moved to another partner', () => {
  onEachDatabase((kind) => {
    const harness = openOnce(() => openCore({ kind }));

    it("has its later events only in the new partner's activity", async () => {
      const { core, database, direct, tenants } = harness;
      const [ada, pat, otto, tia] = await Promise.all(['ada', 'pat', 'otto', 'tia'].map((who) => signIn(core.url, `${who}@example.com`)));
      const { id, keyValue } = await createKey(core.url, ada ?? '');
      const move = { name: 'Ada Account', userType: 'account', accountId: tenants.otherAccount.id, partnerId: null } as const;
      await changeUser(direct.ports, operator, tenants.users.account, move);

      const url = `${core.url}/console/api-keys/${id}`;
      const limit = (cookie = '', addresses = ['192.0.2.0/24']) => ask('PATCH', url, { cookie, body: { addresses } });
      expect((await limit(pat)).status).to.equal(404);
      expect((await limit(otto)).status).to.equal(200);
      // When a core stops, it records all refused addresses.
      const another = await startCoreHere(database);
      expect((await placeCall(another.url, tenants.otherCampaign.id, keyValue)).status).to.equal(401);
      await another.close();
      // A user limited to the account in which the key was created still sees the key.
      expect((await limit(tia, ['198.51.100.0/24'])).status).to.equal(200);
      const shown = async (cookie = '') => {
        const { activity } = apiKeyDetailsSchema.parse((await ask('GET', `${url}?timeZone=UTC`, { cookie })).json);
        return activity.map(({ action, actor }) => `${action} ${actor?.name ?? ''}`);
      };
      const later = ['api-key.limited Tia Tied', 'api-key.refused ', 'api-key.limited Otto Other'];
      expect(await shown(otto)).to.deep.equal(later);
      expect(await shown(tia)).to.deep.equal([...later.slice(0, 2), 'api-key.created Ada Account']);
      expect((await ask('DELETE', url, { cookie: otto ?? '' })).status).to.equal(204);

      const listed = async (cookie = '') => {
        const { events } = activitySchema.parse((await ask('GET', `${core.url}/console/activity?subject=${id}`, { cookie })).json);
        return events.map(({ action }) => action);
      };
      expect(await listed(pat)).to.deep.equal(['api-key.created']);
      expect(await listed(otto)).to.deep.equal(['api-key.revoked', 'api-key.limited', 'api-key.refused', 'api-key.limited']);
    });
  });
});
