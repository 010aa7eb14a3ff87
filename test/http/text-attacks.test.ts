import { expect } from 'chai';
import { apiKeysSchema } from '#contract/console/api-keys.ts';
import { callsSchema } from '#contract/console/calls.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, readCode, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, onDemand, placeCall, signIn, somePhone } from '../support/tenants.ts';

/** Each of these attacks once let an attacker in or brought the core down. */
describe('under attack with malicious text', () => {
  onEachDatabase((kind) => {
    const harness = openOnce(() => openCore({ kind }));
    let cookie: string;
    let key: string;

    before(async () => {
      cookie = await signIn(harness.core.url, 'ada@example.com');
      key = (await createKey(harness.core.url, cookie)).keyValue;
    });

    describe('a property name that validation would overlook', () => {
      const phone = somePhone();
      for (const [where, raw] of [
        ['in the variables', `{"contact":{"phone":"${phone}"},"variables":{"__proto__":"x"}}`],
        ['in the variables, escaped', `{"contact":{"phone":"${phone}"},"variables":{"a":"b","\\u005f_proto__":"x"}}`],
        ['in the call, escaped', `{"contact":{"phone":"${phone}"},"\\u005f_proto__":{"variables":{"a":"b"}}}`],
      ] as const) {
        it(`is refused ${where}`, async () => {
          const answer = await ask('POST', onDemand(harness.core.url, harness.tenants.campaign.id), { key, raw });
          expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
        });
      }

      it("is refused in a session's request body", async () => {
        const raw = `{"name":"x","timeZone":"UTC","expiration":{"kind":"none","\\u005f_proto__":{}}}`;
        const answer = await ask('POST', `${harness.core.url}/console/api-keys`, { cookie, raw });
        expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
      });

      it('is the only kind that is refused: inherited names such as constructor are accepted', async () => {
        const variables = { constructor: 'a', prototype: 'b', toString: 'c', hasOwnProperty: 'd', proto: 'e' };
        const body = { contact: { phone }, variables };
        const placed = await placeCall(harness.core.url, harness.tenants.campaign.id, key, body);
        expect(placed.status, placed.text).to.equal(202);
        const [stored]: (string | null)[] = await harness.direct.storage.database
          .read('calls')
          .where({ contact_id: textAt(placed, 'contactId') })
          .pluck('variables');
        expect(Object.fromEntries(JSON.parse(stored ?? ''))).to.deep.equal(variables);
      });
    });

    it('a name with invisible characters from an earlier version is still served, listed and revoked', async () => {
      const name = 'Old\u200b\u202e';
      const old = await createKey(harness.core.url, cookie, 'Old');
      await harness.direct.storage.database.write('api_keys').where({ id: old.id }).update({ name });
      const placed = await placeCall(harness.core.url, harness.tenants.campaign.id, old.keyValue);
      await harness.direct.storage.database
        .write('calls')
        .where({ contact_id: textAt(placed, 'contactId') })
        .update({ name });
      const listed = apiKeysSchema.parse((await ask('GET', `${harness.core.url}/console/api-keys`, { cookie })).json).apiKeys;
      expect(listed.find(({ id }) => id === old.id)?.name).to.equal(name);
      const { calls } = callsSchema.parse(
        (await ask('GET', `${harness.core.url}/console/campaigns/${harness.tenants.campaign.id}/calls`, { cookie })).json,
      );
      expect([placed.status, calls[0]?.contact.name, calls[0]?.apiKey?.name]).to.deep.equal([202, name, name]);
      expect((await ask('DELETE', `${harness.core.url}/console/api-keys/${old.id}`, { cookie })).status).to.equal(204);
    });
  });
});
