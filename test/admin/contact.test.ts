import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { eraseContact, forgetDoNotCall } from '../../core/domain/calls/contacts.ts';
import { instant } from '../../core/domain/instant.ts';
import { addNumbers } from '../../core/domain/protection/do-not-call.ts';
import { contactStore } from '../../core/storage/calls/contacts.ts';
import { startCoreHere } from '../support/core.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, describeAdminWithTenants, placeCall, signIn, somePhone } from '../support/tenants.ts';

const phone = '+493012345678';

describeAdminWithTenants('admin contact', ({ admin, json, direct, tenants }) => {
  const core = openOnce(() => startCoreHere(direct.database));
  beforeEach(async () => {
    const ada = await createKey(core.url, await signIn(core.url, 'ada@example.com'));
    const oda = await createKey(core.url, await signIn(core.url, 'oda@example.com'));
    const place = (campaign: string, key: string, requestId: string, to: string) =>
      placeCall(core.url, campaign, key, { requestId, contact: { phone: to, name: 'Grace' }, variables: { order: '4711' } });
    for (const requestId of ['ended', 'queued', 'dialing']) await place(tenants.campaign.id, ada.keyValue, requestId, phone);
    await place(tenants.campaign.id, ada.keyValue, 'of-someone-else', somePhone());
    await place(tenants.otherCampaign.id, oda.keyValue, 'elsewhere', phone);
    const { write } = direct.storage.database;
    const ended = { state: 'completed', due_at: null, ended_at: instant(Date.now()), detail: 'Grace was glad.' } as const;
    await write('calls').where({ request_id: 'ended' }).update(ended);
    await write('calls').where({ request_id: 'dialing' }).update({ state: 'dialing', handoff: 'taken' });
  });

  const rows = () => direct.storage.database.read('calls').orderBy('request_id');
  const events = () => direct.storage.database.read('audit_events').where({ subject_kind: 'contact' }).orderBy('id');

  const entries = () => direct.storage.database.read('do_not_call');
  const listNumber = () =>
    addNumbers(direct.ports, operator, { accountId: tenants.account.id, reason: 'asked', phones: [phone], timeZone: 'UTC' });

  it('exports everything stored about a phone number in all campaigns, and records an event without the number', async () => {
    const { calls } = await json('contact', 'export', '+49 (30) 1234-5678');
    expect(calls.map(({ requestId }: { requestId: string }) => requestId)).to.have.members(['ended', 'queued', 'dialing', 'elsewhere']);
    const ended = calls.find(({ requestId }: { requestId: string }) => requestId === 'ended');
    expect(ended).to.deep.include({ phone, name: 'Grace', variables: { order: '4711' }, state: 'completed', detail: 'Grace was glad.' });
    expect(ended).to.include({ campaignName: 'Appointment reminders', accountName: 'Blue Clinic', campaignId: tenants.campaign.id });
    expect((await admin(['contact', 'export', phone])).stdout.split('\n')).to.have.length(6);
    const left = await events();
    expect(left.map(({ action, subject_name }) => [action, subject_name])).to.deep.equal([
      ['contact.exported', '4 calls'],
      ['contact.exported', '4 calls'],
    ]);
    expect(JSON.stringify(left)).not.to.contain(phone.slice(-8));
    expect(await json('contact', 'export', '+493099999999')).to.deep.equal({ calls: [], doNotCallEntries: [] });
  });

  it('leaves an erased number on do-not-call lists, unless --do-not-call is given', async () => {
    await listNumber();
    const exported = await json('contact', 'export', phone);
    expect(exported.doNotCallEntries).to.have.length(1);
    expect(exported.doNotCallEntries[0]).to.include({ phone, reason: 'asked', source: 'admin' });
    expect((await admin(['contact', 'export', phone])).stdout).to.contain('DO NOT CALL FOR');
    const kept = await admin(['contact', 'erase', phone]);
    expect(kept.stdout).to.contain('pass --do-not-call');
    expect(await entries()).to.have.length(1);
    const both = await admin(['contact', 'erase', phone, '--do-not-call', '--json']);
    expect(JSON.parse(both.stdout)).to.include({ doNotCallEntries: 1 });
    expect(await entries()).to.deep.equal([]);
  });

  it("erases a phone number: cancels queued calls, leaves calls in progress until they end, and doesn't change other contacts", async () => {
    const first = await admin(['contact', 'erase', phone, '--json']);
    expect([first.code, JSON.parse(first.stdout)]).to.deep.equal([1, { erased: 3, cancelled: 2, dialing: 1 }]);
    const remaining = (await rows()).filter(({ phone }) => phone !== null);
    expect(remaining.map(({ request_id }) => request_id)).to.deep.equal(['dialing', 'of-someone-else']);
    const [elsewhere] = (await rows()).filter(({ request_id }) => request_id === 'elsewhere');
    expect(elsewhere).to.deep.include({ state: 'cancelled', name: null, variables: null, time_zone: null, detail: null, due_at: null });
    await direct.storage.database
      .write('calls')
      .where({ request_id: 'dialing' })
      .update({ state: 'completed', due_at: null, ended_at: instant(1) });
    expect(await json('contact', 'erase', phone)).to.deep.equal({ erased: 1, cancelled: 0, dialing: 0 });
    expect((await events()).map(({ action, subject_name }) => [action, subject_name])).to.deep.equal([
      ['contact.erased', '3 calls'],
      ['contact.erased', '1 calls'],
    ]);
    expect(await json('contact', 'erase', phone)).to.deep.equal({ erased: 0, cancelled: 0, dialing: 0 });
    expect(await events()).to.have.length(2);
  });

  it("erases nothing if the event can't be recorded", async () => {
    await listNumber();
    const recorded = await direct.storage.database.read('audit_events').first();
    const ports = { ...direct.ports, randomness: { ...direct.ports.randomness, id: () => String(recorded?.id) } };
    for (const erase of [eraseContact, forgetDoNotCall]) {
      const failure = await erase(ports, operator.actor, phone).then(
        () => null,
        (error: unknown) => error,
      );
      expect(failure).to.be.instanceOf(Error);
    }
    const left = await rows();
    expect(left.filter((call) => call.phone === phone).map(({ state }) => state)).to.have.members([
      'completed',
      'queued',
      'dialing',
      'queued',
    ]);
    expect(await entries()).to.have.length(1);
  });

  it('finds every matching call, whatever the batch size', async () => {
    for (const atOnce of [1, 2, 3, 4, 5, 6]) {
      const matches = await contactStore(direct.storage.database, atOnce).findCalls(phone);
      expect(
        matches.map(({ requestId }) => requestId),
        String(atOnce),
      ).to.have.members(['ended', 'queued', 'dialing', 'elsewhere']);
    }
  });

  it('finds a number written with its national prefix, but takes digits without separators literally', async () => {
    const { calls } = await json('contact', 'export', '\u202A+49 (0)30 12345678\u202C');
    expect(calls).to.have.length(4);
    expect(await json('contact', 'export', '+4903012345678')).to.deep.include({ calls: [] });
    await direct.storage.database.write('calls').where({ request_id: 'of-someone-else' }).update({ phone: '+4903012345678' });
    const literal = await json('contact', 'export', '+4903012345678');
    expect(literal.calls.map(({ requestId }: { requestId: string }) => requestId)).to.deep.equal(['of-someone-else']);
  });

  it('says what format a phone number must have', async () => {
    const { code, stderr } = await admin(['contact', 'erase', '030 1234']);
    expect([code, stderr]).to.deep.equal([2, 'error: PHONE: Must be a phone number with its country code, such as +493012345678.\n']);
  });
});
