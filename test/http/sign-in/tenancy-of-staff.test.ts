import { expect } from 'chai';
import { tenanciesSchema } from '#contract/console/session.ts';
import { operator } from '../../../core/domain/audit/audit.ts';
import { createAccount } from '../../../core/domain/directory/directory.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { ask, readCode } from '../../support/http.ts';
import { sessionSuite } from '../../support/session-suite.ts';
import { signIn } from '../../support/tenants.ts';

describe('the tenancy of staff', () => {
  onEachDatabase((kind) => {
    const at = sessionSuite(kind);
    const { session } = at;

    const select = (cookie: string, body: object) => ask('PUT', `${at.core.url}/console/session/tenancy`, { cookie, body });

    it('can be selected, read and cleared', async () => {
      const cookie = await signIn(at.core.url, 'stan@example.com');
      const selected = await select(cookie, { kind: 'account', id: at.tenants.account.id });
      expect(selected.status).to.equal(200);
      const { id } = at.tenants.account;
      expect(selected.json['tenancy']).to.deep.equal({ kind: 'account', id, name: 'Blue Clinic', partnerName: 'Northwind Voice' });
      expect((await session(cookie)).text).to.equal(selected.text);
      expect((await select(cookie, { kind: 'partner', id: at.tenants.partner.id })).json['tenancy']).to.include({
        kind: 'partner',
        name: 'Northwind Voice',
      });
      expect((await select(cookie, { kind: null })).json['tenancy']).to.equal(null);
    });

    it("can't be selected by other users", async () => {
      for (const email of ['ada@example.com', 'pat@example.com', 'tia@example.com']) {
        const cookie = await signIn(at.core.url, email);
        const answer = await select(cookie, { kind: 'account', id: at.tenants.account.id });
        expect([answer.status, readCode(answer)]).to.deep.equal([403, 'forbidden']);
        expect((await ask('GET', `${at.core.url}/console/tenancies`, { cookie })).status).to.equal(403);
      }
    });

    it('must exist', async () => {
      const cookie = await signIn(at.core.url, 'stan@example.com');
      expect((await select(cookie, { kind: 'partner', id: at.tenants.account.id })).status).to.equal(404);
      expect((await select(cookie, { kind: 'nonsense', id: 'x' })).status).to.equal(422);
    });

    it('must be selected before a key is created', async () => {
      const body = { name: 'x', expiration: { kind: 'none' }, timeZone: 'UTC' };
      const answer = await ask('POST', `${at.core.url}/console/api-keys`, {
        cookie: await signIn(at.core.url, 'stan@example.com'),
        body,
      });
      expect([answer.status, answer.json['detail']]).to.satisfy(
        ([status, detail]: [number, string]) => status === 403 && detail.startsWith('Select an account or partner first.'),
      );
    });

    it('is searched by name, ignoring case and accents, best match first', async () => {
      const cookie = await signIn(at.core.url, 'stan@example.com');
      const search = async (text: string) => {
        const { json } = await ask('GET', `${at.core.url}/console/tenancies?search=${encodeURIComponent(text)}`, { cookie });
        return json['tenancies'];
      };
      expect(await search('CLÍNIC')).to.deep.equal([
        { kind: 'account', id: at.tenants.account.id, name: 'Blue Clinic', partnerName: 'Northwind Voice' },
        { kind: 'account', id: at.tenants.siblingAccount.id, name: 'Green Clinic', partnerName: 'Northwind Voice' },
      ]);
      expect(await search('south')).to.deep.equal([{ kind: 'partner', id: at.tenants.otherPartner.id, name: 'Southgate Calling' }]);
      expect(await search('%')).to.deep.equal([]);
      expect(await search('')).to.have.length(5);
    });

    it('is searched among all partners, even if one has hundreds of matching accounts', async () => {
      const { otherPartner, otherAccount } = at.tenants;
      for (let n = 0; n < 60; n++) await createAccount(at.direct.ports, operator, `Aa Garage ${n}`, at.tenants.partner.id);
      const cookie = await signIn(at.core.url, 'stan@example.com');
      for (const text of ['', 'a', 'garage']) {
        const { json } = await ask('GET', `${at.core.url}/console/tenancies?search=${text}`, { cookie });
        const found = tenanciesSchema.parse(json).tenancies;
        expect(found, text).to.have.length(50);
        expect(
          found.slice(0, 8).map(({ id }) => id),
          text,
        ).to.include.members([otherAccount.id, ...(text === 'garage' ? [] : [otherPartner.id])]);
      }
      const { json } = await ask('GET', `${at.core.url}/console/tenancies?search=aa garage 59`, { cookie });
      expect(tenanciesSchema.parse(json).tenancies[0]?.name).to.equal('Aa Garage 59');
    });
  });
});
