import { expect } from 'chai';
import { fakeClock } from '../../support/clock.ts';
import { openCore } from '../../support/core.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { ask } from '../../support/http.ts';
import { createKey, signIn } from '../../support/tenants.ts';

describe("users who haven't signed in for 90 days", () => {
  onEachDatabase((kind) => {
    it('are listed separately, and their keys are marked', async () => {
      const clock = fakeClock('2026-03-31T00:00:00.000Z');
      const { core, close } = await openCore({ kind, clock });
      try {
        const ada = await signIn(core.url, 'ada@example.com');
        await createKey(core.url, ada, 'of someone who left');
        clock.advance({ days: 90 });
        const pat = await signIn(core.url, 'pat@example.com');
        await createKey(core.url, pat, 'of someone who is here');
        const names = async (query: string) => {
          const { json } = await ask('GET', `${core.url}/console/users${query}`, { cookie: pat });
          return (json['users'] as { name: string }[]).map(({ name }) => name);
        };
        const marked = async () => {
          const { json } = await ask('GET', `${core.url}/console/api-keys`, { cookie: pat });
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
      } finally {
        await close();
      }
    });
  });
});
