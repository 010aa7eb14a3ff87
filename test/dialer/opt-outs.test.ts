import { expect } from 'chai';
import { sign } from '#contract/calls/signature.ts';
import { testRandomness } from '../support/clock.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask, textAt } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/receiver.ts';
import {
  createKey,
  type DirectAccess,
  databaseWithTenants,
  openDirect,
  placeCall,
  signIn,
  somePhone,
  type Tenants,
} from '../support/tenants.ts';
import { until } from '../support/until.ts';

const secret = signingSecret;
const olderSecret = `whsec_${'old1'.repeat(10)}`;
type Receiver = Awaited<ReturnType<typeof startReceiver>>;
type Signed = { with?: string; at?: number; [header: `webhook-${string}`]: string };

describe('the dialer, for opt-outs,', () => {
  onEachDatabase((kind) => {
    let database: string;
    let core: RunningCore;
    let direct: DirectAccess;
    let tenants: Tenants;
    let key: string;
    let cookie: string;
    let receiver: Receiver;

    const webhook = () => ({ DIALER: 'webhook', DIALER_URL: receiver.url, DIALER_SECRETS: secret });
    const start = async (environment: Record<string, string>, answer?: Parameters<typeof startReceiver>[0]) => {
      receiver = await startReceiver(answer);
      const secrets = { DIALER_SECRETS: `${secret},${olderSecret}` };
      core = await startCoreHere(database, { environment: { ...webhook(), ...secrets, ...environment } });
      cookie = await signIn(core.url, 'ada@example.com');
      key = (await createKey(core.url, cookie)).keyValue;
    };
    beforeEach(async () => {
      ({ database, tenants } = await databaseWithTenants(kind));
      direct = await openDirect(database);
    });
    afterEach(async () => {
      await core.close();
      await receiver.close();
      await direct.close();
    });

    const place = (body: object = {}): Promise<Answer> =>
      placeCall(core.url, tenants.campaign.id, key, { contact: { phone: somePhone() }, ...body });
    const call = async (contactId: string): Promise<Record<string, unknown>> =>
      (await direct.storage.database.read('calls').where({ contact_id: contactId }).first()) ?? {};
    /** Waits until the call is in one of these states. */
    const untilState = async (contactId: string, ...states: string[]) => {
      await until(async () => states.includes(String((await call(contactId))['state'])));
      return call(contactId);
    };
    const outcome = (body: object, { with: by = secret, at = Math.floor(Date.now() / 1_000), ...headers }: Signed = {}) => {
      const raw = JSON.stringify(body);
      return ask('POST', `${core.url}/dialer/outcomes`, { raw, headers: { ...sign('any', raw, by, at), ...headers } });
    };

    describe('with a webhook', () => {
      describe('that reports an opt-out', () => {
        const entries = (phone: string) => direct.storage.database.read('do_not_call').where({ phone });
        const optOut = (handoffId: string | undefined, more: object = {}) =>
          outcome({ handoffId, state: 'completed', optOut: true, ...more });
        /** Places a call, and waits until the provider has it. */
        const dialed = async (phone: string) => {
          const contactId = textAt(await place({ contact: { phone } }), 'contactId');
          await until(async () => (await call(contactId))['handoff'] === 'taken');
          return contactId;
        };

        it("puts the number on the account's list with the outcome, and stops the other calls queued for it", async () => {
          await start({});
          const phone = somePhone();
          const first = await dialed(phone);
          const later = { contact: { phone }, notBefore: '2099-01-01T00:00:00.000Z' };
          const queued = [await place(later), await place(later), await place(later)].map((placed) => textAt(placed, 'contactId'));
          const other = textAt(await place({ ...later, contact: { phone: somePhone() } }), 'contactId');
          expect((await optOut(first, { detail: 'Never again.' })).status).to.equal(204);
          for (const contactId of queued) await untilState(contactId, 'blocked');
          expect([(await call(first))['state'], (await call(other))['state']]).to.deep.equal(['completed', 'queued']);
          expect((await place({ contact: { phone } })).status).to.equal(403);
          const [entry] = await entries(phone);
          expect(entry).to.include({
            account_id: tenants.account.id,
            contact_id: first,
            source: 'outcome',
            reason: 'asked',
            ends_at: null,
          });
          const events = await direct.storage.database.read('audit_events').where({ action: 'do-not-call.added' });
          expect(events.map(({ actor_name, account_id }) => [actor_name, account_id])).to.deep.equal([
            ['The provider', tenants.account.id],
          ]);
        });

        it("puts the number on the partner's list if the account's opt-outs apply to its partner, and stops calls from the other accounts", async () => {
          await start({});
          await direct.ports.stores.protection.setOptOutScope(tenants.account.id, 'partner', {
            ...{ id: testRandomness.id(), at: direct.ports.clock.now(), actor: null, action: 'account.changed', address: 'local' },
            ...{ subject: { kind: 'account', id: tenants.account.id, name: 'Blue Clinic' }, owningScope: null },
          });
          const phone = somePhone();
          const first = await dialed(phone);
          const elsewhere = { account_id: tenants.siblingAccount.id, campaign_id: tenants.siblingCampaign.id };
          const queued = textAt(await place({ contact: { phone }, notBefore: '2099-01-01T00:00:00.000Z' }), 'contactId');
          await direct.storage.database.write('calls').where({ contact_id: queued }).update(elsewhere);
          expect((await optOut(first)).status).to.equal(204);
          await untilState(queued, 'blocked');
          const [entry] = await entries(phone);
          expect(entry).to.include({ scope_id: tenants.partner.id, account_id: null, contact_id: first });
        });

        it("keeps one entry if it's reported twice, or only after the outcome", async () => {
          await start({});
          const phone = somePhone();
          const handoffId = await dialed(phone);
          expect((await outcome({ handoffId, state: 'busy' })).status).to.equal(204);
          expect((await optOut(handoffId)).status).to.equal(204);
          expect((await optOut(handoffId)).status).to.equal(204);
          expect(await entries(phone)).to.have.length(1);
          expect((await call(handoffId))['state']).to.equal('busy');
        });

        it('lists nothing for an unknown hand-off, a wrong signature, or a number that was erased', async () => {
          await start({});
          const handoffId = await dialed(somePhone());
          expect((await optOut('unknown')).status).to.equal(404);
          const forged = await outcome({ handoffId, state: 'completed', optOut: true }, { with: `whsec_${'else'.repeat(10)}` });
          expect(forged.status).to.equal(401);
          expect((await call(handoffId))['state']).to.equal('dialing');
          await direct.storage.database.write('calls').where({ contact_id: handoffId }).update({ phone: null });
          const erased = await optOut(handoffId);
          expect([erased.status, erased.text]).to.deep.include(404);
          expect(await direct.storage.database.read('do_not_call')).to.deep.equal([]);
        });

        it('stores both or neither if the core fails between the outcome and the entry', async () => {
          await start({});
          const handoffId = await dialed(somePhone());
          await direct.storage.database.write.schema.renameTable('do_not_call', 'do_not_call_away');
          expect((await optOut(handoffId)).status).to.equal(500);
          expect((await call(handoffId))['state']).to.equal('dialing');
          await direct.storage.database.write.schema.renameTable('do_not_call_away', 'do_not_call');
          expect((await optOut(handoffId)).status).to.equal(204);
          expect((await call(handoffId))['state']).to.equal('completed');
          expect(await direct.storage.database.read('do_not_call')).to.have.length(1);
        });
      });
    });
  });
});
