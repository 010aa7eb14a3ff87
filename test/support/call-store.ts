import { mock } from 'node:test';
import { createApiKey, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { deadlines } from '../../core/domain/deadlines.ts';
import type { User } from '../../core/domain/model.ts';
import type { CallStore, NewCall } from '../../core/domain/ports.ts';
import { Problem } from '../../core/domain/problem.ts';
import { callStore } from '../../core/storage/calls/place-and-cancel.ts';
import { batched } from '../../core/storage/engine/batch.ts';
import type { Lane } from '../../core/storage/engine/database.ts';
import type { KeyUse } from '../../core/storage/keys/key-use.ts';
import { fakeClock } from './clock.ts';
import { type DatabaseKind, freshDatabase } from './databases.ts';
import { openOnce } from './suites.ts';
import { createTenants, type DirectAccess, openDirect, toCaller } from './tenants.ts';

type Expiration = Parameters<typeof createApiKey>[2]['expiration'];

/**
 * Returns a database with tenants and keys, and for each test a store without calls, which records what it reports.
 *
 * @property digest the key of an account user
 * @property partnerDigest a partner user's key, with access to both of the partner's campaigns
 * @property seen what the store has reported since the test started or last assigned `seen`
 */
export function callStoreForEach(kind: DatabaseKind) {
  const clock = fakeClock();
  const now = clock.now();

  const createKeyIn = async (direct: DirectAccess, user: User, expiration: Expiration = { kind: 'none' }) => {
    const caller = { viewer: { ...user, tenancy: null }, actor: operator.actor };
    return toDigest((await createApiKey(direct.ports, caller, { name: 'K', expiration, timeZone: 'UTC' })).keyValue);
  };
  const storeOn = (database: Lane): CallStore => {
    const keyUse: Pick<KeyUse, 'note'> = { note: ({ digest, at }, ...did) => its.seen.push([digest, at, ...did]) };
    return callStore(
      database,
      keyUse,
      { unlistedVersion: () => null },
      {
        onBatch: (...batch) => its.seen.push(batch),
        onPlaced: () => its.seen.push('placed'),
        onAddressRefused: ({ digest, address, isActive }) => isActive && its.seen.push([digest, address]),
      },
    );
  };
  const its = openOnce(async () => {
    const seen: unknown[] = [];
    const direct = await openDirect(await freshDatabase(kind), clock);
    const tenants = await createTenants(direct.ports);
    const digest = await createKeyIn(direct, tenants.users.account);
    const partnerDigest = await createKeyIn(direct, tenants.users.partner);
    return { direct, tenants, digest, partnerDigest, seen, calls: storeOn(direct.storage.database), close: direct.close };
  });
  const request = ({ by = its.digest, campaignId = its.tenants.campaign.id, at = now } = {}) => ({ ...toCaller(by), campaignId, at });
  const newCall = (requestId: string, more: Partial<NewCall> = {}): NewCall => ({
    ...{ contactId: `contact of ${requestId}`, requestId, phone: '+493012345678', name: null, timeZone: null, variables: null },
    ...{ notBefore: null, notAfter: null, ...more },
  });
  beforeEach(async () => {
    await its.direct.storage.database.write('calls').delete();
    its.seen = [];
    its.calls = storeOn(its.direct.storage.database);
  });
  return Object.assign(its, {
    ...{ now, storeOn, request, newCall },
    createKey: (user: User, expiration?: Expiration) => createKeyIn(its.direct, user, expiration),
    place: (requestId: string, more: Partial<NewCall> = {}, by: Parameters<typeof request>[0] = {}) =>
      its.calls.place(request(by), newCall(requestId, more)),
    /** The call's row. */
    row: (requestId: string) => its.direct.storage.database.read('calls').where({ request_id: requestId }).first(),
  });
}

type Asked = { n: number; deadline: number };

/** Creates a batch runner whose batches end when the test ends them, unless it's given a `run`. */
export function controlled({
  size = 4,
  maxInFlight = 1,
  confirm = async () => undefined,
  getShare = () => 'one',
  countBytes = () => 0,
  changes = false,
  isSingleRowError = () => false,
  run,
}: {
  size?: number;
  maxInFlight?: number;
  confirm?: () => Promise<void>;
  getShare?: (asked: Asked) => string;
  countBytes?: (asked: Asked) => number;
  changes?: boolean;
  isSingleRowError?: (error: unknown) => boolean;
  /** Ends each batch by itself. */
  run?: (inputs: readonly Asked[]) => Promise<string[]>;
} = {}) {
  const runs: { inputs: number[]; send: () => void; answer: (outputs: string[]) => void; fail: (error: Error) => void }[] = [];
  const request = batched<Asked, string>({
    run: run ?? ((inputs, send) => new Promise((answer, fail) => runs.push({ inputs: inputs.map(({ n }) => n), send, answer, fail }))),
    ...(changes && { isUndone: (error: unknown) => error instanceof Error && error.message === 'undone' }),
    confirm,
    size,
    maxInFlight,
    getShare,
    countBytes,
    isSingleRowError,
    observe: () => undefined,
  });
  /** @param left the milliseconds until the request's deadline */
  const ask = (n: number, left: number = deadlines.answer) => request({ n, deadline: performance.now() + left });
  const finish = async (index: number) => {
    const run = runs[index];
    run?.answer(run.inputs.map((input) => `answer to ${input}`));
    await turns();
  };
  return { ask, runs, finish };
}

/** Lets the event loop turn: a batch starts in the turn after its requests, and their results arrive in the turn after its end. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns the error that a request fails with; for a problem, what its caller sees. */
export async function rejection(request: Promise<unknown>): Promise<unknown> {
  const error: unknown = await request.then(
    () => 'none',
    (reason) => reason,
  );
  return error instanceof Problem ? { code: error.code, retryAfter: error.retryAfter, message: error.message } : error;
}

/** In ms. */
export const stillClock = { now: 0 };

/** The clock stands still until a test moves it. */
export function useStillClock(): void {
  beforeEach(() => {
    stillClock.now = 1_000;
    mock.method(performance, 'now', () => stillClock.now);
    mock.timers.enable({ apis: ['setTimeout'] });
  });
  afterEach(() => {
    // If a test mocked a timer function again, `reset` restores that mock before the timers. In the opposite order, the mocked function
    // would come back. Unlike `restoreAll`, `reset` also forgets the mock, so the function can't come back in the next file either.
    mock.reset();
  });
}
