import { expect } from 'chai';
import { fakeClock } from '../support/clock.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { createKey, signIn } from '../support/tenants.ts';

const environment = { MAX_ACTIVE_KEYS_PER_USER: '5' };
const body = { name: 'A key', expiration: { kind: 'none' }, timeZone: 'UTC' };

describe('the active API keys of a user', () => {
  onEachDatabase((kind) => {
    let harness: CoreHarness;
    let other: RunningCore;
    let cookie: string;
    const clock = fakeClock();
    before(async () => {
      harness = await openCore({ kind, clock, environment });
      other = await startCoreHere(harness.database, { clock, environment });
      cookie = await signIn(harness.core.url, 'ada@example.com');
    });
    after(async () => {
      await other.close();
      await harness.close();
    });
    const create = (core: RunningCore, more = {}) => ask('POST', `${core.url}/console/api-keys`, { cookie, body: { ...body, ...more } });
    const mostNow = () => harness.direct.ports.stores.apiKeys.countActive(harness.tenants.users.account.id, clock.now());

    it('never pass the limit, however many two cores create at once', async () => {
      const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => create(n % 2 === 0 ? harness.core : other)));
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([...Array(5).fill(201), ...Array(7).fill(409)]);
      expect(await mostNow()).to.equal(5);
    });

    it('at the limit, are refused with what to do, while teammates create theirs', async () => {
      const refused = await create(harness.core);
      expect([refused.status, textAt(refused, 'type')]).to.deep.equal([409, 'urn:callkey:problems#conflict']);
      expect(textAt(refused, 'detail')).to.match(/^You have 5 active API keys, .* Revoke a key that's no longer needed, then try again\.$/);
      await createKey(harness.core.url, await signIn(harness.core.url, 'tom@example.com'));
    });

    it('make room when one is revoked or expires', async () => {
      const { json } = await ask('GET', `${harness.core.url}/console/api-keys`, { cookie });
      const [first] = (json as { apiKeys: { id: string }[] }).apiKeys;
      await ask('DELETE', `${harness.core.url}/console/api-keys/${first?.id}`, { cookie });
      expect((await create(harness.core, { expiration: { kind: 'years', years: 1 } })).status).to.equal(201);
      expect((await create(harness.core)).status).to.equal(409);
      clock.advance({ years: 1, days: 1 });
      cookie = await signIn(harness.core.url, 'ada@example.com');
      expect((await create(harness.core)).status).to.equal(201);
      expect((await create(harness.core)).status).to.equal(409);
    });
  });
});
