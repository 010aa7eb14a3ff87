import { expect } from 'chai';
import { up } from '../../../core/storage/migrations/045-canonical-emails.ts';
import { adminOn } from '../../support/admin.ts';
import { type CoreHarness, openCore } from '../../support/core-harness.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { ask, readCode, textAt } from '../../support/http.ts';
import { signIn } from '../../support/tenants.ts';

const [readable, ascii] = ['joerg@münchen.example', 'joerg@xn--mnchen-3ya.example'];

describe('the spellings of an email address', () => {
  onEachDatabase((kind) => {
    let harness: CoreHarness;
    before(async () => {
      harness = await openCore({ kind });
    });
    after(() => harness.close());

    const create = async (email: string) => {
      const cookie = await signIn(harness.core.url, 'stan@example.com');
      return ask('POST', `${harness.core.url}/console/users`, { cookie, body: { email, name: 'Jörg', userType: 'staff' } });
    };
    const tryPassword = (email: string, password: string) =>
      ask('POST', `${harness.core.url}/console/session`, { body: { email, password } });

    it('all mean the same user, who is shown and found with the readable one', async () => {
      const created = await create(readable);
      expect([created.status, textAt(created, 'user', 'email')]).to.deep.equal([201, readable]);
      const password = textAt(created, 'password');
      const dotted = ['.', '\u3002', '\uFF0E', '\uFF61'].flatMap((dot) => [readable + dot, ascii + dot]);
      for (const email of [readable, ascii, ascii.toUpperCase(), ...dotted])
        expect((await tryPassword(email, password)).status, email).to.equal(201);
      for (const email of [ascii, ...dotted]) expect(readCode(await create(email)), email).to.equal('conflict');
      const cookie = await signIn(harness.core.url, 'stan@example.com');
      for (const search of ['joerg@mün', readable, ascii, 'münchen.example', 'mnchen']) {
        const found = await ask('GET', `${harness.core.url}/console/users?search=${encodeURIComponent(search)}`, { cookie });
        expect(found.text.includes(readable), search).to.equal(search !== 'joerg@mün');
      }
    });

    it("don't have empty parts between or after the dots of their domain", async () => {
      for (const domain of ['example.com..', 'münchen.example..', 'example.com.\u3002', 'b..example', '.example', '\u3002example'])
        expect(readCode(await create(`a@${domain}`)), domain).to.equal('invalid');
    });

    it('share one counter of wrong passwords', async () => {
      for (let n = 0; n < 10; n++) await tryPassword(n % 2 ? 'x@bücher.example' : 'x@XN--BCHER-KVA.example', 'wrong');
      expect((await tryPassword('x@bücher.example', 'wrong')).status).to.equal(429);
    });

    it('are unified by the migration, which leaves two users with the same address as they are, and admin check names them', async () => {
      const users = () => harness.direct.storage.database.write('users');
      const { account, partner, staff } = harness.tenants.users;
      const before = new Map([account, partner, staff].map(({ id, email }) => [id, email]));
      const rename = async (id: string, email: string) => users().where({ id }).update({ email });
      const emailOf = async (id: string) => (await users().where({ id }).first('email'))?.email;
      await rename(account.id, 'a@köln.example');
      await rename(partner.id, 'b@köln.example');
      await rename(staff.id, 'b@xn--kln-sna.example');
      await harness.direct.storage.database.write.transaction(up);
      expect([await emailOf(account.id), await emailOf(partner.id), await emailOf(staff.id)]).to.deep.equal([
        'a@xn--kln-sna.example',
        'b@köln.example',
        'b@xn--kln-sna.example',
      ]);
      const { stdout } = await adminOn(harness.database).admin(['check']);
      expect(stdout).to.match(/^FAIL {3}email addresses: 1 user .+ b@köln\.example \(also b@xn--kln-sna\.example\)/m);
      const shown = await adminOn(harness.database).admin(['user', 'show', 'b@köln.example']);
      expect(shown.stdout).to.contain(partner.id);
      for (const [id, email] of before) await rename(id, email);
    });
  });
});
