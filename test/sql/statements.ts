import { auditEvent, operator } from '../../core/domain/audit/audit.ts';
import { oneDay as dayMs, instant, type Millis, plus } from '../../core/domain/instant.ts';
import type { ApiKey, AuditEvent, CallFilter, ClaimedCall, Digest, NewCall, NewDoNotCall, NewUser } from '../../core/domain/model.ts';
import type { CallScope, KeyedRequest } from '../../core/domain/ports/calls.ts';
import type { ImportStore } from '../../core/domain/ports/directory.ts';
import type { Ports, Stores } from '../../core/domain/ports/ports.ts';
import type { ScopeRules } from '../../core/domain/ports/protection.ts';
import type { ThrottleStore } from '../../core/domain/ports/sign-in.ts';
import type { Storage } from '../../core/storage/index.ts';
import { at, testRandomness } from '../support/clock.ts';
import { somePhone, type Tenants, toCaller } from '../support/tenants.ts';

type Stored = Stores & { throttle: ThrottleStore; imports: ImportStore };
/** How to run each method of each store. The record is incomplete if a method has no entry here. */
export type Runs = {
  readonly [Store in keyof Stored]: { readonly [Method in keyof Stored[Store]]: (run: Stored[Store][Method]) => Promise<unknown> };
};

const now = at('2026-11-21T09:00:00.000Z');
const later = plus(now, 60_000);
const digest = (): Digest => Buffer.from(testRandomness.bytes(32)).toString('hex');
const filter = { search: '', cursor: null };
const anyInstant = { from: null, before: null };
const oneDay = {
  from: { at: instant(0), lowestId: '0', highestId: '1' },
  before: { at: later, lowestId: 'y', highestId: 'z' },
};
const allCalls: CallFilter = { placed: anyInstant, states: [], apiKey: null, search: '' };
const secrets = { hash: 'a hash', expiresAt: null };
const nothing = { kind: 'nothing' } as const;

/** Runs a function with one value after another, because concurrent statements would run in varying order. */
async function each<Value>(values: readonly Value[], run: (value: Value) => Promise<unknown>): Promise<void> {
  for (const value of values) await run(value);
}

/** For a database without partners. On any other, it changes nothing. */
export async function setUpOnce(setUp: Stores['directory']['setUp'], ports: Ports): Promise<unknown> {
  const subject = { kind: 'partner', id: '1', name: 'First' } as const;
  const event = auditEvent(ports, operator, 'partner.added', subject, null);
  const ownerAccount = { id: '2', name: 'First', partnerId: '1' };
  return setUp(subject, ownerAccount, { id: '3', name: 'First', accountId: '2' }, [event]);
}

export function createRuns({ ports, storage, tenants }: { ports: Ports; storage: Storage; tenants: Tenants }): Runs {
  const { stores } = storage;
  const { partner, account, campaign, otherCampaign, users } = tenants;
  const user = users.account;
  const event = (): AuditEvent => auditEvent(ports, operator, 'user.changed', { kind: 'user', id: user.id, name: user.name }, null);
  const keyScopes = [
    { kind: 'own', userId: user.id },
    { kind: 'account', accountId: account.id, userId: user.id },
    { kind: 'partner', partnerId: partner.id },
    { kind: 'tenancy', tenancy: { kind: 'account', id: account.id } },
    { kind: 'all' },
    nothing,
  ] as const;
  const own = keyScopes[0];
  const callScopes: CallScope[] = [
    { kind: 'campaigns', ids: [campaign.id] },
    { kind: 'campaigns', ids: [campaign.id, otherCampaign.id] },
    { kind: 'account', accountId: account.id },
    { kind: 'partner', partnerId: partner.id },
    nothing,
  ];
  const [oneCampaign = nothing] = callScopes;

  async function key(creator = user): Promise<{ key: ApiKey; digest: Digest }> {
    const made = { key: createKey(creator), digest: digest() };
    await stores.apiKeys.create(made.key, made.digest, 1_000, event());
    return made;
  }
  const createKey = (creator: typeof user): ApiKey => ({
    id: testRandomness.id(),
    name: 'A key',
    creator: { id: creator.id, name: creator.name, email: creator.email, isDisabled: false, lastSignInAt: null },
    owningScope: { accountId: account.id, partnerId: partner.id },
    createdAt: now,
    lastUsedAt: null,
    expiresAt: null,
    expiryTimeZone: null,
    timeZone: 'UTC',
    limits: null,
  });
  async function createKeys(creator: typeof user, count: number): Promise<void> {
    const columns = { creator_id: creator.id, creator_partner_id: partner.id, partner_id: partner.id, name: 'A key', created_at: now };
    const rows = Array.from({ length: count }, () => ({ id: testRandomness.id(), digest: digest(), ...columns }));
    await storage.database.write.batchInsert('api_keys', rows, 50);
  }
  const requestWith = (digest: Digest): KeyedRequest => ({ ...toCaller(digest), campaignId: campaign.id, at: now });
  const createCall = (): NewCall => ({
    contactId: testRandomness.id(),
    requestId: testRandomness.id(),
    phone: somePhone(),
    name: null,
    timeZone: null,
    variables: null,
    notBefore: null,
    notAfter: null,
  });
  async function placed(): Promise<{ request: KeyedRequest; call: NewCall; key: ApiKey }> {
    const { key: placing, digest } = await key();
    const request = requestWith(digest);
    const call = createCall();
    await stores.calls.place(request, call);
    return { request, call, key: placing };
  }
  async function claimed(): Promise<ClaimedCall> {
    const { call } = await placed();
    for (;;) {
      const found = await stores.dialing.claim(100, 'webhook', now, later);
      const claim = found.find(({ contactId }) => contactId === call.contactId);
      if (claim) return claim;
    }
  }
  async function ended(): Promise<ClaimedCall> {
    const call = await claimed();
    const end = { event: 'rejected', to: 'failed', detail: null, endedAt: now, durationSeconds: null } as const;
    await stores.dialing.settle(call, end);
    return call;
  }
  const toIdentity = (subject: string) => ({ issuer: 'https://login.example.com', subject });
  const toCode = (of: Digest) => ({
    digest: of,
    userId: user.id,
    issuer: 'https://login.example.com',
    challenge: 'a challenge',
    expiresAt: now,
  });
  const createUser = (): NewUser => ({
    id: testRandomness.id(),
    email: `${testRandomness.id()}@example.com`,
    name: 'A user',
    userType: 'account',
    accountId: account.id,
    partnerId: partner.id,
    password: secrets,
    createdAt: now,
  });
  async function createdUser() {
    const created = createUser();
    await stores.users.create(created, event());
    return { ...user, ...created };
  }
  async function session(userId = user.id, halfOpenUntil: Millis | null = null): Promise<Digest> {
    const id = digest();
    const { passwordHash } = (await stores.users.findByEmail(user.email)) ?? { passwordHash: '' };
    await stores.sessions.start({ id, userId, at: now, halfOpenUntil }, passwordHash, event());
    return id;
  }
  /** Gives the user a second factor, with recovery codes `a` and `b`. */
  async function secondFactor(): Promise<void> {
    await stores.secondFactors.reset(user.id, event());
    await stores.secondFactors.enroll(user.id, 'a secret');
    await stores.secondFactors.confirm(user.id, { secret: 'a secret', step: 1, recoveryDigests: ['a', 'b'], at: now }, event());
  }
  const step = { kind: 'step', step: 2 } as const;
  const recovery = { kind: 'recovery', digest: 'a' } as const;
  const createEntity = (id = testRandomness.id()) => ({
    ...{ externalId: id, id, name: 'Imported' },
    ...{ partnerId: partner.id, accountId: account.id, email: `${id}@example.com`, userType: 'account' },
  });
  const inAccount = { kind: 'account', accountId: account.id } as const;
  const toNumbers = (phone: string, accountId: string | null = account.id): NewDoNotCall => ({
    owner: { accountId, partnerId: partner.id },
    numbers: [{ id: testRandomness.id(), phone }],
    ...{ reason: 'asked', note: null, source: 'console', call: null, createdBy: null, createdAt: now, endsAt: later },
  });
  const importedEntry = () => {
    const { numbers: _, ...entry } = toNumbers(somePhone());
    return entry;
  };
  const begunImport = async () => {
    const id = testRandomness.id();
    await stores.numberImports.begin(id, importedEntry(), now);
    return id;
  };
  const revokeOptions = { cancelQueuedCalls: true, at: now };
  const counter = { key: 'a network', max: 1, window: 60_000 };

  return {
    calls: {
      findActive: async (findActive) => findActive({ ...toCaller((await key()).digest), at: now }),
      async place(place) {
        const { request, call } = await placed();
        await place(request, createCall());
        // One of the two is a repeated call. The statement inserts only the other one, so a query has to find out which call is new.
        await Promise.all([place(request, { ...call, contactId: testRandomness.id() }), place(request, createCall())]);
        const counted = await key();
        const limits = { version: testRandomness.id(), addresses: null, callsPerDay: 1, timeZone: 'UTC' };
        await stores.apiKeys.limit(counted.key.id, null, limits, { day: '2026-11-21', from: now }, event());
        await place({ ...requestWith(counted.digest), key: { expiresAt: null, limits } }, createCall());
      },
      async cancel(cancel) {
        const { request, call } = await placed();
        await cancel(request, { requestId: call.requestId });
        await cancel(request, { requestId: call.requestId });
        const other = await placed();
        await cancel(other.request, { contactId: other.call.contactId });
        await cancel(other.request, { contactId: other.call.contactId });
      },
      authorize: async (authorize) => authorize(requestWith((await key()).digest)),
    },
    dialing: {
      async claim(claim) {
        await placed();
        await claim(1, 'webhook', now, later);
        const scope = {
          kind: 'campaign',
          id: campaign.id,
          name: 'A campaign',
          owner: { accountId: account.id, partnerId: partner.id },
        } as const;
        const call = createCall();
        await stores.calls.place(requestWith((await key()).digest), call);
        const rules: Partial<ScopeRules>[] = [
          { hours: [{ prefix: '', days: ['sun'], from: '09:00', to: '18:00' }] },
          { hours: [{ prefix: '', date: '2026-11-21', from: '00:00', to: '24:00' }] },
          { hours: null, countries: ['FR'] },
        ];
        await each(rules, async (rule) => {
          await placed();
          await stores.protection.setRules(scope, rule, event());
          await claim(1, 'webhook', now, later);
        });
        await stores.protection.setRules(scope, { hours: null, countries: null }, event());
        const listed = await placed();
        await stores.protection.addNumbers(toNumbers(listed.call.phone), now, event());
        await claim(100, 'webhook', now, later);
      },
      async settle(settle) {
        const settled = { detail: 'No answer.', endedAt: now, durationSeconds: null };
        await settle(await claimed(), { event: 'taken', to: 'taken', dialedAt: now, dueAt: later });
        await settle(await claimed(), { event: 'not-taken', to: 'retry', dueAt: later, detail: 'Busy.' });
        await settle(await claimed(), { event: 'rejected', to: 'failed', ...settled });
      },
      async reportOutcome(reportOutcome) {
        const { contactId } = await claimed();
        const outcome = { state: 'completed', detail: null, endedAt: later, durationSeconds: 30 } as const;
        await reportOutcome(contactId, outcome, later);
        await reportOutcome(contactId, outcome, later);
        const nextEvent = () => event();
        await reportOutcome(contactId, outcome, later, { id: testRandomness.id(), eventOf: nextEvent });
      },
      lapse: (lapse) => lapse(now),
      endForgotten: (endForgotten) => endForgotten(now),
      recoverFromClockStep: (recover) => recover(now, true),
      async noteTrouble(noteTrouble) {
        await noteTrouble('a core', { since: now, reason: 'The provider is down.' }, now);
      },
      findTrouble: (findTrouble) => findTrouble(now),
      queue: (queue) => queue(now),
    },
    callList: {
      hasCampaign: (hasCampaign) => hasCampaign({ kind: 'account', accountId: account.id }, campaign.id),
      async list(list) {
        const { call } = await placed();
        await each(callScopes, (scope) => list(scope, allCalls, null, own, 1));
        const narrow: CallFilter = { placed: oneDay, states: ['queued', 'dialing'], apiKey: testRandomness.id(), search: '+49 30' };
        await list(oneCampaign, narrow, call.contactId, own, 100);
        await list({ kind: 'account', accountId: account.id }, { ...allCalls, search: 'Ada' }, null, own, 100);
        await list({ kind: 'account', accountId: account.id }, { ...allCalls, states: ['failed', 'busy'] }, null, own, 100);
      },
      async countUpTo(countUpTo) {
        await countUpTo(oneCampaign, allCalls, 1_000);
        await countUpTo(oneCampaign, { ...allCalls, states: ['completed'] }, 1_000);
        await countUpTo({ kind: 'account', accountId: account.id }, { ...allCalls, placed: oneDay, states: ['failed'] }, 1_000);
      },
      count: (count) => count(oneCampaign, allCalls, null),
      seesKey: (seesKey) => seesKey(own, testRandomness.id()),
      find: async (find) => find(campaign.id, (await placed()).call.contactId, own),
      summary: (summary) => summary(campaign.id, now),
      summaryOfAll: (summaryOfAll) => summaryOfAll([campaign.id], [now]),
      compactCounts: (compactCounts) => compactCounts(),
    },
    apiKeys: {
      create: (create) => create(createKey(user), digest(), 1_000, event()),
      async limit(limit) {
        const limits = { version: testRandomness.id(), addresses: ['10.0.0.0/8'], callsPerDay: 10, timeZone: 'UTC' };
        await limit((await key()).key.id, null, limits, { day: '2026-11-21', from: now }, event());
      },
      addresses: (addresses) => addresses(testRandomness.id(), now, 20),
      placedOn: (placedOn) => placedOn(testRandomness.id(), '2026-11-21'),
      countActive: (countActive) => countActive(user.id, now),
      async list(list) {
        const older = await key();
        await each(keyScopes, (visibility) => list(visibility, 100, null));
        await list(own, 100, older.key);
        const deleting = await createdUser();
        await key(deleting);
        await storage.database.write('users').where({ id: deleting.id }).update({ deleted_at: now });
        await list(own, 100, null);
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
        await storage.database.write('retired_api_keys').where({ id: key.id }).update({ cancelling_since: now });
        await finishCancelling(now, AbortSignal.timeout(60_000));
      },
      compactCounts: (compactCounts) => compactCounts(),
      countByDaysLeft: (countByDaysLeft) => countByDaysLeft(now),
    },
    numberImports: {
      begin: (begin) => begin(testRandomness.id(), importedEntry(), now),
      addPart: (addPart) => addPart(testRandomness.id(), 0, [somePhone()]),
      async commit(commit) {
        const id = await begunImport();
        await commit(id, now, event());
      },
      async moveSome(moveSome) {
        const id = await begunImport();
        await stores.numberImports.addPart(id, 0, Array.from({ length: 1_001 }, somePhone));
        for (let step = 0; step < 3; step++) await moveSome(id, () => testRandomness.id(), now);
      },
      finish: (finish) => finish(testRandomness.id()),
      discard: (discard) => discard(testRandomness.id()),
      listStartedBefore: (listStartedBefore) => listStartedBefore(now),
    },
    protection: {
      async addNumbers(addNumbers) {
        await addNumbers(toNumbers(somePhone(), account.id), now, event());
        await addNumbers(toNumbers(somePhone(), null), now, null);
      },
      async lift(lift) {
        await lift(testRandomness.id(), event());
        const added = toNumbers(somePhone(), account.id);
        await stores.protection.addNumbers(added, now, event());
        await each(added.numbers, ({ id }) => lift(id, event()));
      },
      entriesFor: (entriesFor) => entriesFor(somePhone()),
      forget: (forget) => forget(somePhone()),
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
        await searchNumbers({ kind: 'partner', partnerId: partner.id }, '+49', { phone: '+491', id: '1' }, 50);
      },
      findBlocking: (findBlocking) => findBlocking({ accountId: account.id, partnerId: partner.id }, somePhone(), now),
      async findScope(findScope) {
        await each(['partner', 'account', 'campaign'] as const, (kind) => findScope({ kind: 'all' }, kind, testRandomness.id()));
      },
      rulesOf: (rulesOf) => rulesOf(account.id),
      campaignRules: (campaignRules) => campaignRules(campaign.id),
      async setRules(setRules) {
        const owner = { accountId: account.id, partnerId: partner.id };
        await setRules({ kind: 'account', id: account.id, name: account.name, owner }, { countries: null }, event());
      },
      async blockListed(blockListed) {
        await stores.protection.addNumbers(toNumbers((await placed()).call.phone, account.id), now, event());
        await blockListed(now);
        await stores.protection.addNumbers(toNumbers((await placed()).call.phone, null), now, event());
        await blockListed(now);
      },
      deleteEnded: (deleteEnded) => deleteEnded(now),
      countHeld: (countHeld) => countHeld(now),
    },
    users: {
      count: (count) => count(),
      async list(list) {
        const accountUsers = { kind: 'account', accountId: account.id, partnerId: partner.id } as const;
        const visibilities = [
          accountUsers,
          { kind: 'partner', partnerId: partner.id },
          { kind: 'staff' },
          { kind: 'all' },
          nothing,
        ] as const;
        await each(visibilities, (visibility) => list(visibility, { search: '', awaySince: null }, null, 100));
        await list({ kind: 'all' }, { search: 'Ada', awaySince: now }, { at: now, id: user.id }, 100);
      },
      find: (find) => find({ kind: 'all' }, user.id),
      async deletionImpact(deletionImpact) {
        await deletionImpact(user.id, null, 1);
        await deletionImpact(user.id, { at: later, id: user.id }, 1);
      },
      findByEmail: (findByEmail) => findByEmail(user.email),
      create: (create) => create(createUser(), event()),
      async setPassword(setPassword) {
        const { id, password } = await createdUser();
        await setPassword(id, password, null, null, event());
        await setPassword(user.id, password, null, await session(), event());
        await setPassword(id, password, password.hash, null, event());
      },
      async change(change) {
        await change((await createdUser()).id, createUser(), event());
        await change((await createdUser()).id, { ...createUser(), userType: 'staff', accountId: null, partnerId: null }, event());
      },
      async setDisabled(setDisabled) {
        const { id } = await createdUser();
        await setDisabled(id, now, event());
        await setDisabled(id, null, event());
      },
      async delete(deleteUser) {
        const deleted = await createdUser();
        await createKeys(deleted, 1_000);
        await deleteUser(deleted.id, revokeOptions, event());
        await deleteUser((await createdUser()).id, { ...revokeOptions, cancelQueuedCalls: false }, event());
      },
      async finishDeletions(finishDeletions) {
        const { id } = await createdUser();
        await storage.database.write('users').where({ id }).update({ deleted_at: now });
        await finishDeletions(AbortSignal.timeout(60_000));
      },
      async finishMoves(finishMoves) {
        const moved = await createdUser();
        await createKeys(moved, 250);
        const { write } = storage.database;
        await write('users').where({ id: moved.id }).update({ moving_keys: testRandomness.id() });
        await write('api_keys').where({ creator_id: moved.id }).update({ creator_partner_id: null });
        await finishMoves(AbortSignal.timeout(60_000));
      },
    },
    sessions: {
      async start(start) {
        const { passwordHash } = (await stores.users.findByEmail(user.email)) ?? { passwordHash: '' };
        await start({ id: digest(), userId: user.id, at: now, halfOpenUntil: null }, passwordHash, event());
      },
      async finish(finish) {
        await secondFactor();
        const started = { id: digest(), userId: user.id, at: now, halfOpenUntil: null } as const;
        await finish(await session(user.id, later), started, step, [event()]);
      },
      find: (find) => find(digest()),
      touch: (touch) => touch(digest(), now),
      selectTenancy: async (selectTenancy) => selectTenancy(await session(), null, event()),
      end: async (end) => end(await session(), event()),
      endAll: (endAll) => endAll(user.id, event()),
      async startLinked(startLinked) {
        const linked = await createdUser();
        await stores.links.create(linked.id, toIdentity(linked.id), now, event());
        await startLinked(digest(), linked.id, toIdentity(linked.id).issuer, now, event());
      },
      async sweep(sweep) {
        const bounds = { startedAfter: now, seenAfter: now, before: now, now };
        await sweep(bounds, { password: true, issuer: null });
        await sweep(bounds, { password: false, issuer: 'https://login.example.com' });
      },
    },
    links: {
      find: (find) => find(toIdentity(user.id)),
      async create(create) {
        const linked = await createdUser();
        await create(linked.id, toIdentity(linked.id), now, event());
      },
      async delete(remove) {
        const linked = await createdUser();
        await stores.links.create(linked.id, toIdentity(linked.id), now, event());
        await remove(linked.id, event());
      },
      list: (list) => list(),
      createCode: (createCode) => createCode(toCode(digest())),
      async takeCode(takeCode) {
        const code = toCode(digest());
        await stores.links.createCode(code);
        await takeCode(code.digest);
      },
      sweepCodes: (sweepCodes) => sweepCodes(now),
    },
    secondFactors: {
      find: (find) => find(user.id),
      async enroll(enroll) {
        await stores.secondFactors.reset(user.id, event());
        await each(['a secret', 'another secret'], (secret) => enroll(user.id, secret));
      },
      async confirm(confirm) {
        await stores.secondFactors.reset(user.id, event());
        await stores.secondFactors.enroll(user.id, 'a secret');
        await confirm(user.id, { secret: 'a secret', step: 1, recoveryDigests: ['a', 'b'], at: now }, event());
      },
      async use(use) {
        await secondFactor();
        await each([step, recovery], (code) => use(user.id, code, [event()]));
      },
      async remove(remove) {
        await secondFactor();
        await remove(user.id, step, event());
      },
      async renew(renew) {
        await secondFactor();
        await renew(user.id, recovery, ['c', 'd'], event());
      },
      countRecoveryCodes: (countRecoveryCodes) => countRecoveryCodes(user.id),
      async reset(reset) {
        await secondFactor();
        await reset(user.id, event());
      },
      listSealedOtherwise: (list) => list('key.', '', 100),
      reseal: (reseal) => reseal(user.id, 'a secret', 'another secret'),
    },
    throttle: {
      blockedUntil: (blockedUntil) => blockedUntil([counter], now),
      take: (take) => each([1, 2], () => take([counter], now)),
      giveBack: (giveBack) => giveBack(counter.key),
      reset: (reset) => reset(counter.key),
      sweep: (sweep) => sweep(now),
    },
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
          const thing = createEntity();
          const password = kind === 'users' ? secrets : null;
          await write(kind, { added: [{ thing, password, event: event() }], changed: [] });
          await write(kind, { added: [], changed: [{ thing, event: event() }] });
        }),
    },
    activity: {
      record: (record) => record(event()),
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
        await stores.activity.record({ ...event(), actor: user });
        await facets({ kind: 'service' });
      },
      async listOfApiKey(listOfApiKey) {
        await listOfApiKey({ kind: 'service' }, testRandomness.id(), 100);
        await listOfApiKey({ kind: 'own', userId: user.id }, testRandomness.id(), 100);
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
        await erase([{ campaignId, contactId }], now);
      },
    },
    clock: {
      read: (read) => read(),
      advance: (advance) => advance(now),
      set: (set) => set(now),
    },
  };
}

function toAccess(scope: CallScope) {
  return scope.kind === 'campaigns' ? [] : [scope];
}
