import { expect } from 'chai';
import { describeAdmin } from '../support/admin.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { emptyDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKey, createTenants, onDemand, openDirect, placeCall, signIn, somePhone } from '../support/tenants.ts';

const password = 'correct horse battery staple';

describeAdmin('admin key', emptyDatabase, ({ admin, json, database }) => {
  it('lists and revokes keys of everybody, and cancels their queued calls when asked', async () => {
    const core = await startCoreHere(database());
    const { partner } = await json('partner', 'add', 'One');
    const { account } = await json('account', 'add', 'A', '--partner', partner.id);
    const { campaign } = await json('campaign', 'add', 'C', '--account', account.id);
    await admin(
      ['user', 'add', 'ada@example.com', '--name', 'Ada', '--type', 'account', '--account', account.id, '--password-stdin'],
      password,
    );
    const { id, keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com', password), 'CRM');
    await placeCall(core.url, campaign.id, keyValue, { requestId: 'r1', contact: { phone: somePhone() } });
    const { apiKeys, total } = await json('key', 'list');
    expect([total, apiKeys[0].name, apiKeys[0].owner.name]).to.deep.equal([1, 'CRM', 'Ada']);
    expect(JSON.stringify(apiKeys)).not.to.contain('svc_sk_live_');
    await json('key', 'revoke', id, '--cancel-queued-calls');
    expect((await ask('DELETE', `${onDemand(core.url, campaign.id)}/by-request-id/r1`, { key: keyValue })).status).to.equal(401);
    await core.close();
    const direct = await openDirect(database());
    const states = await direct.storage.database.read('calls').pluck('state');
    await direct.close();
    expect(states).to.deep.equal(['cancelled']);
    expect((await admin(['key', 'revoke', id])).code).to.equal(3);
  });

  describe('revoke --value-from-stdin', () => {
    let core: RunningCore;
    let key: { id: string; keyValue: string };

    beforeEach(async () => {
      core = await startCoreHere(database());
      const direct = await openDirect(database());
      await createTenants(direct.ports);
      await direct.close();
      key = await createKey(core.url, await signIn(core.url, 'ada@example.com'), 'Leaked');
    });
    afterEach(() => core.close());

    const revoke = (input: string, ...more: string[]) => admin(['key', 'revoke', '--value-from-stdin', ...more], input);

    it('revokes the key that has this value, and says which it was', async () => {
      const { code, stdout } = await revoke(`${key.keyValue}\n`);
      expect([code, stdout]).to.deep.equal([0, 'Revoked the API key Leaked of Ada Account.\n']);
      expect((await placeCall(core.url, 'some', key.keyValue)).status).to.equal(401);
      expect((await revoke(key.keyValue)).code).to.equal(3);
    });

    it('takes no mistyped value, and repeats none', async () => {
      const mistyped = `${key.keyValue.slice(0, -1)}-`;
      const { code, stdout, stderr } = await revoke(mistyped);
      expect(code).to.equal(2);
      expect(stderr).to.contain('no API key');
      expect(stdout + stderr).not.to.contain(mistyped.slice(0, -1));
      expect((await placeCall(core.url, 'some', key.keyValue)).status).to.equal(403);
    });

    it('takes an id or a value, and not both or none', async () => {
      expect((await revoke(key.keyValue, key.id)).code).to.equal(2);
      expect((await admin(['key', 'revoke'])).code).to.equal(2);
      expect((await placeCall(core.url, 'some', key.keyValue)).status).to.equal(403);
    });
  });
});
