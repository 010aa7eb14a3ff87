import { expect } from 'chai';
import { oneDay, plus } from '../../core/domain/instant.ts';
import { testRandomness } from '../support/clock.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { dialerOnce } from '../support/provider.ts';
import { somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('a webhook that reports an opt-out', () => {
  onEachDatabase((kind) => {
    const dialer = dialerOnce(kind);
    const { place, call, untilState, outcome } = dialer;

    const entries = (phone: string) => dialer.direct.storage.database.read('do_not_call').where({ phone });
    const optOut = (handoffId: string | undefined, more: object = {}) => outcome({ handoffId, state: 'completed', optOut: true, ...more });
    /** Places a call, and waits until the provider has it. */
    const dialed = async (phone: string) => {
      const contactId = textAt(await place({ contact: { phone } }), 'contactId');
      await until(async () => (await call(contactId))['handoff'] === 'taken');
      return contactId;
    };

    it("puts the number on the account's list with the outcome, and stops the other calls queued for it", async () => {
      const phone = somePhone();
      const first = await dialed(phone);
      const later = { contact: { phone }, notBefore: '2099-01-01T00:00:00.000Z' };
      const queued = [await place(later), await place(later), await place(later)].map((placed) => textAt(placed, 'contactId'));
      const other = textAt(await place({ ...later, contact: { phone: somePhone() } }), 'contactId');
      const blocked = async () => {
        const { text } = await ask('GET', `${dialer.core.managementUrl}/metrics`);
        return Number(/^callkey_calls_blocked_total\{reason="do-not-call"\} (\d+)$/m.exec(text)?.[1] ?? 0);
      };
      const before = await blocked();
      expect((await optOut(first, { detail: 'Never again.' })).status).to.equal(204);
      for (const contactId of queued) await untilState(contactId, 'blocked');
      // The core counts blocked calls only after their states are stored.
      await until(async () => (await blocked()) === before + 3);
      expect([(await call(first))['state'], (await call(other))['state']]).to.deep.equal(['completed', 'queued']);
      expect((await place({ contact: { phone } })).status).to.equal(403);
      const [entry] = await entries(phone);
      expect(entry).to.include({
        account_id: dialer.tenants.account.id,
        contact_id: first,
        source: 'outcome',
        reason: 'asked',
        ends_at: null,
      });
      const events = await dialer.direct.storage.database.read('audit_events').where({ action: 'do-not-call.added' });
      expect(events.map(({ actor_name, account_id }) => [actor_name, account_id])).to.deep.equal([
        ['The provider', dialer.tenants.account.id],
      ]);
    });

    it("puts the number on the partner's list if opt-outs apply to all of the partner's accounts, and stops the other accounts' calls", async () => {
      await dialer.direct.ports.stores.doNotCall.setOptOutScope(dialer.tenants.account.id, 'partner', {
        ...{ id: testRandomness.id(), at: dialer.direct.ports.clock.now(), actor: null, action: 'account.changed', address: 'local' },
        ...{ subject: { kind: 'account', id: dialer.tenants.account.id, name: 'Blue Clinic' }, owningScope: null },
      });
      const phone = somePhone();
      const first = await dialed(phone);
      const elsewhere = { account_id: dialer.tenants.siblingAccount.id, campaign_id: dialer.tenants.siblingCampaign.id };
      const queued = textAt(await place({ contact: { phone }, notBefore: '2099-01-01T00:00:00.000Z' }), 'contactId');
      await dialer.direct.storage.database.write('calls').where({ contact_id: queued }).update(elsewhere);
      expect((await optOut(first)).status).to.equal(204);
      await untilState(queued, 'blocked');
      const [entry] = await entries(phone);
      expect(entry).to.include({ scope_id: dialer.tenants.partner.id, account_id: null, contact_id: first });
    });

    const added = "The number was added to the do-not-call list, but the outcome wasn't recorded.";

    it("with an invalid field, puts the number on the list all the same, and says so, but doesn't store the outcome", async () => {
      for (const [field, wrong] of [
        ['state', 'ringing'],
        ['state', undefined],
        ['transcript', 'Never again.'],
        ['endedAt', 'yesterday'],
        ['detail', 7],
        ['durationSeconds', -1],
        ['optOut', 'True'],
        ['optOut', 1],
      ] as const) {
        const phone = somePhone();
        const handoffId = await dialed(phone);
        const queued = textAt(await place({ contact: { phone }, notBefore: '2099-01-01T00:00:00.000Z' }), 'contactId');
        for (let repeats = 0; repeats < 2; repeats++) {
          const answer = await optOut(handoffId, { [field]: wrong });
          expect(answer.status, `${field} ${wrong}`).to.equal(422);
          expect(textAt(answer, 'detail').startsWith(`${added} Invalid body at ${field}: `)).to.equal(true);
        }
        await untilState(queued, 'blocked');
        expect((await call(handoffId))['state']).to.equal('dialing');
        const owner = { account_id: dialer.tenants.account.id, contact_id: handoffId, source: 'outcome', reason: 'asked' };
        const [entry, ...others] = await entries(phone);
        expect(entry).to.include(owner);
        expect(others).to.deep.equal([]);
        expect((await outcome({ handoffId, state: 'completed' })).status).to.equal(204);
        expect((await optOut(handoffId, { [field]: wrong })).status).to.equal(422);
      }
      const events = await dialer.direct.storage.database.read('audit_events').where({ action: 'do-not-call.added' });
      expect(events.map(({ actor_name }) => actor_name)).to.deep.equal(Array(8).fill('The provider'));
    });

    // How a report is read doesn't depend on the database.
    if (kind === 'sqlite')
      it("that can't be parsed or is too long, puts the number on the list all the same, and says so", async () => {
        const invalid = `${added} The body isn't valid JSON in UTF-8.`;
        const tooLong = `${added} A report must be at most 65536 bytes.`;
        const long = `"${'x'.repeat(200_000)}"`;
        for (const [toReport, status, says] of [
          [(id: string) => `{"detail": "a\nb", "handoffId": "${id}", "optOut" : true}`, 400, invalid],
          [(id: string) => `{"detail": NaN, "handoffId": "${id}", "optOut" : true}`, 400, invalid],
          [(id: string) => `{"detail": "\\"handoffId\\":\\"none\\", "handoffId": "${id}", "optOut" : true}`, 400, invalid],
          [(id: string) => `{"handoffId":"${id}","state":"completed","optOut":true,"detail":${long}}`, 413, tooLong],
          [(id: string) => `{"detail":${long},"handoffId":"${id}","state":"completed","optOut":true}`, 413, tooLong],
        ] as const) {
          const phone = somePhone();
          const report = toReport(await dialed(phone));
          const answer = await outcome(report);
          expect([answer.status, answer.json['detail']], report.slice(0, 80)).to.deep.equal([status, says]);
          expect(await entries(phone)).to.have.length(1);
          const without = await outcome(report.replace(/("optOut" ?: ?)true/, '$1false'));
          expect(without.json['detail']).not.to.include('added');
        }
      });

    it("with an invalid field, gets a 404 if the hand-off doesn't exist or its number was erased", async () => {
      const handoffId = await dialed(somePhone());
      await dialer.direct.storage.database.write('calls').where({ contact_id: handoffId }).update({ phone: null });
      for (const id of [handoffId, 'none', 'not an ID', '\0']) expect((await optOut(id, { detail: 7 })).status).to.equal(404);
    });

    if (kind === 'sqlite')
      it('is only an opt-out if it says so', async () => {
        const phone = somePhone();
        const handoffId = await dialed(phone);
        for (const more of [{ optOut: false }, { optOut: 'false' }, { optOut: null }, { optOut: undefined }]) {
          const answer = await outcome({ handoffId, state: 'ringing', ...more });
          expect(answer.status).to.equal(422);
          expect(answer.json['detail']).not.to.include('do-not-call');
        }
        expect(await entries(phone)).to.deep.equal([]);
      });

    it('makes a temporary entry permanent, and records this', async () => {
      const phone = somePhone();
      const handoffId = await dialed(phone);
      const { clock, stores } = dialer.direct.ports;
      const owner = { accountId: dialer.tenants.account.id, partnerId: dialer.tenants.partner.id };
      const entry = { owner, reason: 'complaint', source: 'console', note: null, createdBy: null, createdAt: clock.now() } as const;
      const numbers = [{ id: testRandomness.id(), phone }];
      await stores.doNotCall.addNumbers({ ...entry, call: null, endsAt: plus(clock.now(), oneDay), numbers }, clock.now(), null);
      expect((await optOut(handoffId)).status).to.equal(204);
      expect((await optOut(handoffId)).status).to.equal(204);
      expect((await entries(phone)).map(({ ends_at }) => ends_at)).to.deep.equal([null]);
      const events = await dialer.direct.storage.database.read('audit_events').where({ action: 'do-not-call.added' });
      expect(events.map(({ actor_name }) => actor_name)).to.deep.equal(['The provider']);
    });

    it("stores neither the outcome nor the list entry if the entry can't be stored", async () => {
      const handoffId = await dialed(somePhone());
      await dialer.direct.storage.database.write.schema.renameTable('do_not_call', 'do_not_call_away');
      expect((await optOut(handoffId)).status).to.equal(500);
      expect((await call(handoffId))['state']).to.equal('dialing');
      await dialer.direct.storage.database.write.schema.renameTable('do_not_call_away', 'do_not_call');
      expect((await optOut(handoffId)).status).to.equal(204);
      expect((await call(handoffId))['state']).to.equal('completed');
      expect(await dialer.direct.storage.database.read('do_not_call')).to.have.length(1);
    });
  });
});
