import { expect } from 'chai';
import { describeAdmin } from '../support/admin.ts';
import { startCoreHere } from '../support/core.ts';
import { emptyDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKey, onDemand, openDirect, placeCall, signIn, somePhone } from '../support/tenants.ts';

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
});
