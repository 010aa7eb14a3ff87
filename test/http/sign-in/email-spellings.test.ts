import { expect } from 'chai';
import { openCore } from '../../support/core.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { ask, readCode, textAt } from '../../support/http.ts';
import { openOnce } from '../../support/suites.ts';
import { signIn } from '../../support/tenants.ts';

const [readable, ascii] = ['joerg@münchen.example', 'joerg@xn--mnchen-3ya.example'];

describe('the spellings of an email address', () => {
  onEachDatabase((kind) => {
    const harness = openOnce(() => openCore({ kind }));

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

    it('appear in messages as the readable one', async () => {
      const id = textAt(await create('a@bücher.example'), 'user', 'id');
      const taken = await create('a@xn--bcher-kva.example');
      expect(textAt(taken, 'detail')).to.equal('A user with the email address a@bücher.example already exists.');
      const cookie = await signIn(harness.core.url, 'stan@example.com');
      const unlinked = await ask('DELETE', `${harness.core.url}/console/users/${id}/link`, { cookie });
      expect(textAt(unlinked, 'detail')).to.equal("a@bücher.example isn't linked to an identity at the provider.");
    });

    it('share one counter of wrong passwords', async () => {
      for (let n = 0; n < 10; n++) await tryPassword(n % 2 ? 'x@bücher.example' : 'x@XN--BCHER-KVA.example', 'wrong');
      expect((await tryPassword('x@bücher.example', 'wrong')).status).to.equal(429);
    });
  });
});
