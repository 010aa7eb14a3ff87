import { expect } from 'chai';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { openForEach } from '../support/suites.ts';
import { createKey, signIn } from '../support/tenants.ts';

describe('the API key metric', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();

    beforeEach(() => {
      clock.set('2026-11-21T09:00:00.000Z');
    });
    const harness = openForEach(() => openCore({ kind, clock }));

    const counted = async () => {
      const { text } = await ask('GET', `${harness.core.managementUrl}/metrics`);
      return Object.fromEntries(
        Array.from(text.matchAll(/^callkey_api_keys\{days_left="(\w+)"\} (\d+)$/gm), ([, left, keys]) => [left, Number(keys)]),
      );
    };

    it('counts unrevoked keys by the days until they expire', async () => {
      const cookie = await signIn(harness.core.url, 'ada@example.com');
      const dates = ['2026-11-22', '2026-11-28', '2026-11-29', '2026-12-20', '2026-12-31', '2027-05-01', '2028-01-01', '2029-01-01'];
      for (const date of dates) await createKey(harness.core.url, cookie, date, { kind: 'custom', date });
      await createKey(harness.core.url, cookie, 'No expiration');
      const revoked = await createKey(harness.core.url, cookie, 'revoked');
      await ask('DELETE', `${harness.core.url}/console/api-keys/${revoked.id}`, { cookie });
      clock.set('2026-11-22T22:59:59.999Z');
      expect(await counted()).to.deep.equal({ expired: 0, '7': 3, '30': 1, more: 4, never: 1 });
      clock.set('2026-11-22T23:00:00.000Z');
      expect(await counted()).to.deep.equal({ expired: 1, '7': 2, '30': 1, more: 4, never: 1 });
    });
  });
});
