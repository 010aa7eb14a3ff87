import type { AuditAction } from '#contract/console/activity.ts';
import { auditEvent, operator } from '../../core/domain/audit/audit.ts';
import { instant, type Millis, plus } from '../../core/domain/instant.ts';
import type { ApiKey, AuditEvent, CallFilter, ClaimedCall, Digest, NewCall, NewDoNotCall, NewUser } from '../../core/domain/model.ts';
import type { CallScope, ImportStore, KeyedRequest, Ports, Stores, ThrottleStore } from '../../core/domain/ports.ts';
import type { Storage } from '../../core/storage/storage.ts';
import { at, testRandomness } from '../support/clock.ts';
import { somePhone, type Tenants, toCaller } from '../support/tenants.ts';

type Stored = Stores & { throttle: ThrottleStore; imports: ImportStore };
/** How to run each method of each store. The type requires every method, so none is missing from the recorded SQL. */
export type Runs = {
  readonly [Store in keyof Stored]: { readonly [Method in keyof Stored[Store]]: (run: Stored[Store][Method]) => Promise<unknown> };
};

export const now = at('2026-11-21T09:00:00.000Z');
export const later = plus(now, 60_000);
export const today = { day: '2026-11-21', from: now, before: plus(now, 86_400_000), ids: ['0'], recentId: '1' };
export const digest = (): Digest => Buffer.from(testRandomness.bytes(32)).toString('hex');
export const filter = { search: '', cursor: null };
export const anyInstant = { from: null, before: null };
export const oneDay = {
  from: { at: instant(0), lowestId: '0', highestId: '1' },
  before: { at: later, lowestId: 'y', highestId: 'z' },
};
export const allCalls: CallFilter = { placed: anyInstant, states: [], apiKey: null, search: '' };
export const secrets = { hash: 'a hash', expiresAt: null, isHandedOut: true };
export const nothing = { kind: 'nothing' } as const;

/** Runs a function with one value after another, because concurrent statements would run in varying order. */
export async function each<Value>(values: readonly Value[], run: (value: Value) => Promise<unknown>): Promise<void> {
  for (const value of values) await run(value);
}

/** Creates the first partner in a database that has none. Does nothing in any other database. */
export async function setUpOnce(setUp: Stores['directory']['setUp'], ports: Ports): Promise<unknown> {
  const subject = { kind: 'partner', id: '1', name: 'First' } as const;
  const event = auditEvent(ports, operator, 'partner.added', subject, null);
  const ownerAccount = { id: '2', name: 'First', partnerId: '1' };
  return setUp(subject, ownerAccount, { id: '3', name: 'First', accountId: '2' }, [event]);
}

export function toAccess(scope: CallScope) {
  return scope.kind === 'campaigns' ? [] : [scope];
}

export type Fixtures = ReturnType<typeof createFixtures>;

/** Rows and values for the statements, and functions that create them. */
export function createFixtures({ ports, storage, tenants }: { ports: Ports; storage: Storage; tenants: Tenants }) {
  const { stores } = storage;
  const { partner, account, campaign, otherCampaign, users } = tenants;
  const user = users.account;
  const event = (action: AuditAction = 'user.changed', id = user.id): AuditEvent =>
    auditEvent(ports, operator, action, { kind: 'user', id, name: user.name }, null);
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
  const owningScope = { accountId: account.id, partnerId: partner.id };
  const createKey = (creator: typeof user): ApiKey => ({
    id: testRandomness.id(),
    name: 'A key',
    creator: { id: creator.id, name: creator.name, email: creator.email, isStaff: false, isDisabled: false, lastSignInAt: null },
    owningScope,
    eventScope: owningScope,
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
    ...toIdentity(user.id),
    digest: of,
    userId: user.id,
    signInVersion: '',
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
    const { signInVersion } = (await stores.users.findByEmail(user.email)) ?? { signInVersion: '' };
    await stores.sessions.start({ id, userId, at: now, halfOpenUntil }, signInVersion, event());
    return id;
  }
  /** Gives the user a second factor, with recovery codes `a` and `b`. */
  async function secondFactor(): Promise<void> {
    await stores.secondFactors.reset(user, event());
    await stores.secondFactors.enroll(user, 'a secret');
    await stores.secondFactors.confirm(user.id, { secret: 'a secret', step: 1, recoveryDigests: ['a', 'b'], at: now }, event());
  }
  const step = { kind: 'step', step: 2 } as const;
  const recovery = { kind: 'recovery', digest: 'a' } as const;
  const createEntity = (id = testRandomness.id()) => ({
    ...{ externalId: id, id, name: 'Imported' },
    ...{ partnerId: partner.id, accountId: account.id, email: `${id}@example.com`, userType: 'account', disabled: null },
  });
  const inAccount = { kind: 'account', accountId: account.id } as const;
  const toNumbers = (phone: string, accountId: string | null = account.id): NewDoNotCall => ({
    owner: { accountId, partnerId: partner.id },
    numbers: [{ id: testRandomness.id(), phone }],
    ...{ reason: 'asked', note: null, source: 'console', call: null, createdBy: null, createdAt: now, endsAt: later },
  });
  const revokeOptions = { cancelQueuedCalls: true, at: now };
  const counter = { key: 'a network', max: 1, window: 60_000 };

  return {
    stores,
    partner,
    account,
    campaign,
    user,
    event,
    keyScopes,
    own,
    callScopes,
    oneCampaign,
    key,
    createKey,
    createKeys,
    requestWith,
    createCall,
    placed,
    claimed,
    ended,
    toIdentity,
    toCode,
    createUser,
    createdUser,
    session,
    secondFactor,
    step,
    recovery,
    createEntity,
    inAccount,
    toNumbers,
    revokeOptions,
    counter,
    ports,
    storage,
  };
}
