import { expect } from 'chai';
import { apiKeysSchema, revokedApiKeysSchema } from '#contract/console/api-keys.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

describe('revoking several API keys in one request', () => {
  onEachDatabase((kind) => {
    const harness = openOnce(() => openCore({ kind }));
    let cookie: string;

    before(async () => {
      cookie = await signIn(harness.core.url, 'ada@example.com');
    });
    // Revokes what the test has left.
    afterEach(async () => {
      const ids = (await list()).apiKeys.map(({ id }) => id);
      if (ids.length > 0) await revoke(ids);
    });

    const revoke = async (ids: string[], more: object = {}) => {
      const answer = await ask('POST', `${harness.core.url}/console/api-keys/revocations`, { cookie, body: { ids, ...more } });
      expect(answer.status).to.equal(200);
      return revokedApiKeysSchema.strict().parse(answer.json);
    };
    const keys = async (count: number) => {
      const created: Awaited<ReturnType<typeof createKey>>[] = [];
      for (let n = 0; n < count; n++) created.push(await createKey(harness.core.url, cookie, `key ${n}`));
      return created;
    };
    const list = async () => apiKeysSchema.parse((await ask('GET', `${harness.core.url}/console/api-keys`, { cookie })).json);

    it("takes effect at the next request with each of these keys, and doesn't affect other keys", async () => {
      const [one, two, three] = await keys(3);
      const ids = [one?.id ?? '', two?.id ?? ''];
      expect(await revoke(ids)).to.deep.equal({ revoked: ids, gone: [] });
      const statuses = await Promise.all(
        [one, two, three].map(async (key) => (await placeCall(harness.core.url, harness.tenants.campaign.id, key?.keyValue ?? '')).status),
      );
      expect(statuses).to.deep.equal([401, 401, 202]);
      expect((await list()).total).to.equal(1);
    });

    it('reports invisible, revoked and unknown keys as gone, and revokes the others', async () => {
      const [mine, before] = await keys(2);
      const others = await createKey(harness.core.url, await signIn(harness.core.url, 'tom@example.com'));
      await revoke([before?.id ?? '']);
      const ids = [others.id, mine?.id ?? '', before?.id ?? '', 'no-such-key'];
      expect(await revoke(ids)).to.deep.equal({ revoked: [mine?.id], gone: [others.id, before?.id, 'no-such-key'] });
      expect((await placeCall(harness.core.url, harness.tenants.campaign.id, others.keyValue)).status).to.equal(202);
    });

    it('reports a repeated ID once', async () => {
      const [one] = await keys(1);
      const id = one?.id ?? '';
      expect(await revoke([id, id, 'none', 'none'])).to.deep.equal({ revoked: [id], gone: ['none'] });
    });

    it('lets exactly one of several concurrent requests revoke each key', async () => {
      const ids = (await keys(10)).map(({ id }) => id);
      const answers = await Promise.all(Array.from({ length: 6 }, (_, n) => revoke(n % 2 ? ids : ids.toReversed())));
      expect(answers.flatMap(({ revoked }) => revoked).sort()).to.deep.equal([...ids].sort());
      for (const { revoked, gone } of answers) expect([...revoked, ...gone].sort()).to.deep.equal([...ids].sort());
    });

    it('cancels queued calls only on request', async () => {
      const [stays, goes, goesToo] = await keys(3);
      for (const key of [stays, goes, goesToo]) await placeCall(harness.core.url, harness.tenants.campaign.id, key?.keyValue ?? '');
      await revoke([stays?.id ?? '']);
      await revoke([goes?.id ?? '', goesToo?.id ?? ''], { cancelQueuedCalls: true });
      const { read } = harness.direct.storage.database;
      const calls: { api_key_id: string; state: string; detail: string | null }[] = await read('calls').select(
        'api_key_id',
        'state',
        'detail',
      );
      const states = new Map(calls.map(({ api_key_id, state }) => [api_key_id, state]));
      expect([stays, goes, goesToo].map((key) => states.get(key?.id ?? ''))).to.deep.equal(['queued', 'cancelled', 'cancelled']);
      // Both say why.
      const why = 'The API key was revoked, and its queued calls were cancelled.';
      const ids = [stays, goes, goesToo].map((key) => key?.id ?? '');
      const details = new Map(calls.map(({ api_key_id, detail }) => [api_key_id, detail]));
      expect(ids.map((id) => details.get(id))).to.deep.equal([null, why, why]);
      const revoked = read('audit_events').where({ action: 'api-key.revoked' }).whereIn('subject_id', ids);
      expect(await revoked.pluck('detail')).to.have.members([null, 'cancelled the queued calls', 'cancelled the queued calls']);
    });
  });
});
