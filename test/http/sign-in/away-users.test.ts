import { expect } from 'chai';
import { fakeClock } from '../../support/clock.ts';
import { openCore } from '../../support/core.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { ask } from '../../support/http.ts';
import { openOnce } from '../../support/suites.ts';
import { createKey, signIn } from '../../support/tenants.ts';

describe("users who haven't signed in for 90 days", () => {
  onEachDatabase((kind) => {
    const clock = fakeClock('2026-03-31T00:00:00.000Z');
    const harness = openOnce(() => openCore({ kind, clock }));

    it('are listed separately, and their keys are marked', async () => {
      const ada = await signIn(harness.core.url, 'ada@example.com');
      await createKey(harness.core.url, ada, 'of someone who left');
      clock.advance({ days: 90 });
      const pat = await signIn(harness.core.url, 'pat@example.com');
      await createKey(harness.core.url, pat, 'of someone who is here');
      const names = async (query: string) => {
        const { json } = await ask('GET', `${harness.core.url}/console/users${query}`, { cookie: pat });
        return (json['users'] as { name: string }[]).map(({ name }) => name);
      };
      const marked = async () => {
        const { json } = await ask('GET', `${harness.core.url}/console/api-keys`, { cookie: pat });
        return (json['apiKeys'] as { name: string; ownerAway?: true }[]).filter(({ ownerAway }) => ownerAway).map(({ name }) => name);
      };
      // Ada's 90 days aren't over yet. The others have never signed in, and were created on 1 January.
      expect(await names('?away=true')).to.have.members(['Tom Teammate', 'Sue Sibling', 'Tia Tied']);
      expect(await marked()).to.deep.equal([]);
      clock.advance({ seconds: 1 });
      expect(await names('?away=true')).to.have.members(['Ada Account', 'Tom Teammate', 'Sue Sibling', 'Tia Tied']);
      expect(await names('?away=true&search=ada')).to.deep.equal(['Ada Account']);
      expect(await names('')).to.include('Pat Partner');
      expect(await marked()).to.deep.equal(['of someone who left']);
    });
  });
});
