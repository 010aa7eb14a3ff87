import { Readable } from 'node:stream';
import { testRandomness } from '../../support/clock.ts';
import { somePhone } from '../../support/tenants.ts';
import { digest, each, type Fixtures, now, type Runs, today } from '../fixtures.ts';

export function createKeysRuns({
  stores,
  partner,
  account,
  campaign,
  user,
  event,
  keyScopes,
  own,
  key,
  createKey,
  placed,
  createdUser,
  inAccount,
  toNumbers,
  revokeOptions,
  storage,
}: Fixtures): Pick<Runs, 'apiKeys' | 'protection'> {
  return {
    apiKeys: {
      create: (create) => create(createKey(user), digest(), 1_000, event()),
      async limit(limit) {
        const limits = { version: testRandomness.id(), addresses: ['10.0.0.0/8'], callsPerDay: 10, timeZone: 'UTC' };
        await limit((await key()).key.id, null, limits, today, event());
      },
      addresses: (addresses) => addresses(testRandomness.id(), now, 20),
      recount: (recount) => recount(testRandomness.id(), today),
      placedOn: (placedOn) => placedOn(testRandomness.id(), '2026-11-21'),
      countActive: (countActive) => countActive(user.id, now),
      async list(list) {
        await each(keyScopes, (visibility) => list(visibility, 100));
        const deleting = await createdUser();
        await key(deleting);
        await storage.database.write('users').where({ id: deleting.id }).update({ deleted_at: now });
        await list(own, 100);
        await storage.database.write('users').where({ id: deleting.id }).update({ deleted_at: null });
      },
      find: (find) => each(keyScopes, (scope) => find(scope, testRandomness.id())),
      async page(page) {
        await page(own, null, 100);
        await page(own, testRandomness.id(), 100);
      },
      findAll: (findAll) => findAll(own, [testRandomness.id()]),
      findByDigest: (findByDigest) => findByDigest(own, digest()),
      details: (details) => details(own, testRandomness.id()),
      usage: (usage) => usage(testRandomness.id(), now),
      countQueuedCalls: (countQueuedCalls) => countQueuedCalls(testRandomness.id()),
      revoke: async (revoke) => revoke([(await placed()).key.id], revokeOptions, []),
      async finishCancelling(finishCancelling) {
        const { key } = await placed();
        await stores.apiKeys.revoke([key.id], { ...revokeOptions, cancelQueuedCalls: false }, []);
        await storage.database.write('revoked_api_keys').where({ id: key.id }).update({ cancelling_since: now });
        await finishCancelling(now, AbortSignal.timeout(60_000));
      },
      compactCounts: (compactCounts) => compactCounts(),
      countByDaysLeft: (countByDaysLeft) => countByDaysLeft(now),
    },
    protection: {
      async addNumbers(addNumbers) {
        await addNumbers(toNumbers(somePhone(), account.id), now, event());
        await addNumbers(toNumbers(somePhone(), null), now, null);
      },
      async importNumbers(importNumbers) {
        const { numbers, ...entry } = toNumbers(somePhone());
        await importNumbers(entry, Readable.from(numbers), now, event());
      },
      async lift(lift) {
        await lift(testRandomness.id(), event());
        const added = toNumbers(somePhone(), account.id);
        await stores.protection.addNumbers(added, now, event());
        await each(added.numbers, ({ id }) => lift(id, event()));
      },
      entriesFor: (entriesFor) => entriesFor(somePhone()),
      async forget(forget) {
        const added = toNumbers(somePhone(), account.id);
        await stores.protection.addNumbers(added, now, event());
        await each(added.numbers, ({ phone }) => forget(phone, event()));
      },
      optOutScope: (optOutScope) => optOutScope(account.id),
      async setOptOutScope(setOptOutScope) {
        await setOptOutScope(account.id, 'partner', event());
        await setOptOutScope(account.id, 'account', event());
      },
      findEntry: (findEntry) => findEntry(inAccount, testRandomness.id()),
      async listNumbers(listNumbers) {
        await stores.protection.addNumbers(toNumbers(somePhone(), account.id), now, event());
        await listNumbers(inAccount, null, 50);
        await listNumbers({ kind: 'partner', partnerId: partner.id }, testRandomness.id(), 50);
      },
      async searchNumbers(searchNumbers) {
        await searchNumbers(inAccount, '+49', null, 50);
        await searchNumbers(inAccount, '+49', { phone: '+491', id: '1' }, 50);
        await searchNumbers({ kind: 'partner', partnerId: partner.id }, '+49', { phone: '+491', id: '1' }, 50);
      },
      findBlocking: (findBlocking) => findBlocking({ accountId: account.id, partnerId: partner.id }, somePhone(), now),
      async findScope(findScope) {
        await each(['partner', 'account', 'campaign'] as const, (kind) => findScope({ kind: 'all' }, kind, testRandomness.id()));
      },
      findRules: (findRules) => findRules(account.id),
      campaignRules: (campaignRules) => campaignRules(campaign.id),
      async setRules(setRules) {
        const owner = { accountId: account.id, partnerId: partner.id };
        const scope = { kind: 'account', id: account.id, name: account.name, owner } as const;
        await setRules(scope, { countries: null }, event(), null);
        await setRules(scope, { countries: null }, event(), () => undefined);
      },
      async blockListed(blockListed) {
        await stores.protection.addNumbers(toNumbers((await placed()).call.phone, account.id), now, event());
        await blockListed(now);
        await stores.protection.addNumbers(toNumbers((await placed()).call.phone, null), now, event());
        await blockListed(now);
      },
      async makeHeldDue(makeHeldDue) {
        const owner = { accountId: account.id, partnerId: partner.id };
        const scope = { kind: 'account', id: account.id, name: account.name, owner } as const;
        await stores.protection.setRules(scope, { hours: [{ prefix: '', days: ['sun'], from: '09:00', to: '18:00' }] }, event(), null);
        await placed();
        await stores.protection.setRules(scope, { hours: null }, event(), null);
        await makeHeldDue(now, new AbortController().signal);
      },
      deleteEnded: (deleteEnded) => deleteEnded(now),
      countHeld: (countHeld) => countHeld(now),
    },
  };
}
