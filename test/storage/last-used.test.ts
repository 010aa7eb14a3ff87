import { mock } from 'node:test';
import { expect } from 'chai';
import { createApiKey, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { placeCall } from '../../core/domain/calls/place-and-cancel.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { createTenants, type DirectAccess, openDirect, somePhone, toCaller } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe("a key's last use", () => {
  onEachDatabase((kind) => {
    let clock: FakeClock;
    let direct: DirectAccess;
    let place: () => Promise<unknown>;

    beforeEach(async () => {
      clock = fakeClock();
      mock.timers.enable({ apis: ['setInterval'] });
      direct = await openDirect(await freshDatabase(kind), clock);
      const { users, campaign } = await createTenants(direct.ports);
      const input = { name: 'A key', expiration: { kind: 'none' }, timeZone: 'Europe/Berlin' } as const;
      const { keyValue } = await createApiKey(direct.ports, { viewer: { ...users.account, tenancy: null }, actor: operator.actor }, input);
      place = () => placeCall(direct.ports, toCaller(toDigest(keyValue)), campaign.id, { contact: { phone: somePhone() } });
    });
    afterEach(async () => {
      await direct.close();
      mock.timers.reset();
    });

    const lastUsedAt = async (): Promise<number | null> =>
      (await direct.storage.database.read('api_keys').first('last_used_at'))?.last_used_at ?? null;
    const isWritten = (at: number) => until(async () => (await lastUsedAt()) === at);
    /** Advances the timers by the interval at which the core writes the uses that it has collected. */
    const sweep = () => mock.timers.tick(10_000);

    it('is written within ten seconds of placing a call while the core is running', async () => {
      const usedAt = clock.now();
      await place();
      sweep();
      await isWritten(usedAt);
    });

    it('is written again within a minute, and at most every 45 seconds', async () => {
      const first = clock.now();
      await place();
      sweep();
      await isWritten(first);
      clock.advance({ seconds: 44 });
      await place();
      sweep();
      // If the core writes this use at all, it does so before this write.
      await direct.storage.database.write('api_keys').update({ name: 'Renamed' });
      expect(await lastUsedAt()).to.equal(first);
      const second = clock.now();
      clock.advance({ seconds: 1 });
      sweep();
      await isWritten(second);
    });
  });
});
