import { oneDay as dayMs, plus } from '../../../core/domain/instant.ts';
import { testRandomness } from '../../support/clock.ts';
import { somePhone } from '../../support/tenants.ts';
import { anyInstant, each, type Fixtures, filter, nothing, now, oneDay, type Runs, secrets, setUpOnce, toAccess } from '../fixtures.ts';

export function createDirectoryRuns({
  stores,
  partner,
  account,
  campaign,
  user,
  event,
  own,
  callScopes,
  ended,
  createEntity,
  ports,
}: Fixtures): Pick<Runs, 'tenancies' | 'directory' | 'imports' | 'activity' | 'auditChain' | 'retention' | 'contacts' | 'clock'> {
  return {
    tenancies: {
      findPartner: (findPartner) => findPartner(partner.id),
      findAccount: (findAccount) => findAccount(account.id),
      async findTenancy(findTenancy) {
        await findTenancy({ kind: 'account', id: account.id });
        await findTenancy({ kind: 'partner', id: partner.id });
      },
      createPartner: (createPartner) => createPartner({ id: testRandomness.id(), name: 'A partner' }, event()),
      createAccount: (createAccount) => createAccount({ id: testRandomness.id(), name: 'An account', partnerId: partner.id }, event()),
      createCampaign: (create) => create({ id: testRandomness.id(), name: 'A campaign', accountId: account.id }, event()),
      allPartners: (allPartners) => allPartners(),
      allAccounts: (allAccounts) => allAccounts(),
      allCampaigns: (allCampaigns) => allCampaigns(),
      async listAccounts(listAccounts) {
        await each(callScopes.flatMap(toAccess), (access) => listAccounts(access, filter, 100));
        await listAccounts({ kind: 'partner', partnerId: partner.id }, { search: 'Blue', cursor: account.id }, 100);
      },
      async listCampaigns(listCampaigns) {
        await listCampaigns(nothing, filter, 100);
        await listCampaigns({ kind: 'partner', partnerId: partner.id }, { search: 'Blue', cursor: campaign.id }, 100);
      },
      search: (search) => each(['', 'Blue'], (text) => search(text, 100)),
    },
    directory: {
      setUp: (setUp) => setUpOnce(setUp, ports),
      rename: (rename) =>
        each(['partner', 'account', 'campaign'] as const, (kind) => rename(kind, { id: account.id, name: 'Blue' }, event())),
      async delete(remove) {
        await stores.tenancies.createPartner({ id: 'gone', name: 'Gone' }, event());
        await stores.tenancies.createAccount({ id: 'gone', name: 'Gone', partnerId: 'gone' }, event());
        await stores.tenancies.createCampaign({ id: 'gone', name: 'Gone', accountId: 'gone' }, event());
        await each(['campaign', 'account', 'partner'] as const, (kind) => remove(kind, 'gone', event()));
      },
      async partners(partners) {
        await partners({ kind: 'all' }, filter, 100);
        await partners({ kind: 'partner', partnerId: partner.id }, { search: 'North', cursor: partner.id }, 100);
        await partners(nothing, filter, 100);
      },
      async accounts(accounts) {
        await accounts({ kind: 'all' }, null, filter, 2);
        await accounts({ kind: 'partner', partnerId: partner.id }, partner.id, { search: 'Blue', cursor: account.id }, 100);
      },
      async campaigns(campaigns) {
        await campaigns({ kind: 'all' }, null, filter, 2);
        await campaigns({ kind: 'partner', partnerId: partner.id }, account.id, { search: 'Re', cursor: campaign.id }, 100);
      },
      findPartner: (findPartner) => findPartner({ kind: 'all' }, partner.id),
      findAccount: (findAccount) => findAccount({ kind: 'all' }, account.id),
      findCampaign: (findCampaign) => findCampaign({ kind: 'all' }, campaign.id),
    },
    imports: {
      find: (find) => each(['partners', 'accounts', 'campaigns', 'users'] as const, (kind) => find(kind, [account.id])),
      findEmails: (findEmails) => findEmails([user.email]),
      write: (write) =>
        each(['partners', 'accounts', 'campaigns', 'users'] as const, async (kind) => {
          const entity = createEntity();
          const password = kind === 'users' ? secrets : null;
          await write(kind, { added: [{ entity, password, event: event(), disabling: null }], changed: [] });
          const disabling = kind === 'users' ? event() : null;
          const changed = { entity: { ...entity, name: 'Changed', disabled: true }, event: event(), unlinking: null, disabling };
          await write(kind, { added: [], changed: [changed] });
        }),
    },
    activity: {
      async record(record) {
        await record(event());
        await record({ ...event('account.added'), actor: user, budget: { since: now, lowestId: '' } });
      },
      async list(list) {
        const scopes = [
          own,
          { kind: 'account', accountId: account.id },
          { kind: 'partner', partnerId: partner.id },
          { kind: 'service' },
          nothing,
        ] as const;
        await each(scopes, (visibility) => list(visibility, { at: anyInstant, actor: null, action: null, subject: null }, null, 100));
        const narrow = { at: oneDay, actor: { id: user.id }, action: 'user.changed', subject: user.id };
        await list({ kind: 'service' }, narrow, testRandomness.id(), 100);
        await list({ kind: 'service' }, { ...narrow, actor: { id: null } }, null, 100);
      },
      count: (count) => count({ kind: 'service' }, { at: anyInstant, actor: null, action: null, subject: null }, 1_000),
      async facets(facets) {
        for (const actor of [user, { id: 'gone', name: 'Gone' }]) await stores.activity.record({ ...event(), actor });
        await facets({ kind: 'service' });
      },
      async listOfApiKey(listOfApiKey) {
        await listOfApiKey({ userId: user.id, visibility: { kind: 'service' } }, testRandomness.id(), 100);
        await listOfApiKey({ userId: user.id, visibility: { kind: 'own', userId: user.id } }, testRandomness.id(), 100);
      },
    },
    auditChain: {
      extend: (extend) => extend(),
      state: (state) => state(),
      read: (read) => read(0, 1, 1),
      oldestAt: (oldestAt) => oldestAt(),
      prune: (prune) => prune(1),
    },
    retention: {
      async recordDays(recordDays) {
        await recordDays({ contacts: 90, auditEvents: null });
      },
      recordedDays: (recordedDays) => recordedDays(),
      countErasable: (countErasable) => countErasable(now),
      async erase(erase) {
        await ended();
        await erase(plus(now, dayMs));
      },
      forgetCounts: (forgetCounts) => forgetCounts(now),
    },
    contacts: {
      findCalls: (findCalls) => findCalls(somePhone()),
      async erase(erase) {
        const { campaignId, contactId } = await ended();
        await erase([{ campaignId, contactId }], now, () => event());
      },
    },
    clock: {
      read: (read) => read(),
      advance: (advance) => advance(now),
      set: (set) => set(now),
    },
  };
}
