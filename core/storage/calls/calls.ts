import { allowsAddress, countingDay } from '../../domain/api-keys.ts';
import { initialStage, stageAfter, stagesBefore } from '../../domain/calls/call-states.ts';
import { instant, type Millis } from '../../domain/instant.ts';
import type { ActiveKey, Digest, NewCall } from '../../domain/model.ts';
import type { CallStore, Cancellation, KeyedRequest, Placement, Refusal } from '../../domain/ports.ts';
import { Problem, ResultUnknown } from '../../domain/problem.ts';
import { type Judgement, judge } from '../../domain/protection/judge.ts';
import { toNetworks } from '../../domain/sign-in/throttle.ts';
import { type BatchObserver, batched } from '../engine/batch.ts';
import type { Database, Row } from '../engine/database.ts';
import { isSingleRowError, isUndone } from '../engine/errors.ts';
import { perShard, shardOf } from '../engine/shards.ts';
import { isAllowed, joinAuthorization, keyHasAccess, keyIsActive, keyOfRequest } from '../keys/authorization.ts';
import { type KnownLimits, knownLimits, limitColumns } from '../keys/key-limits.ts';
import type { KeyUse } from '../keys/key-use.ts';
import type { KnownLists } from '../protection/known-lists.ts';
import { type KnownRules, knownRules } from '../protection/known-rules.ts';
import { isListed, listingSql } from '../protection/listed.ts';
import { cancelledAtSql, isUndialed, stageSql } from './call-stages.ts';
import { countedInserter, type DayOfKey, placedToday, readPlaced } from './counted-calls.ts';
import { countEnded } from './ended-calls.ts';
import {
  callColumns,
  callRow,
  inGroups,
  insertStatement,
  type Judged,
  type Placing,
  placingGroups,
  requestColumns,
  requestRow,
  type Verdict,
} from './placing.ts';
import { readBack } from './read-back.ts';

/** Observes the number of requests that shared a statement. */
export type ObserveBatch = (operation: 'look up' | 'place' | 'cancel' | 'explain', size: number) => void;

/** A call to place with a key that has a daily call limit. */
type CountedPlacing = Placing & { day: string };
/** A request with one of the call's two identifiers. @property phone empty unless the request places a call */
type Naming = Judged & { name: string; phone: string };

/** The table's primary key. The index by contact alone contains only calls that were handed off. */
export const callKey: readonly ['campaign_id', 'contact_id'] = ['campaign_id', 'contact_id'];

/** The maximum number of times that a request is tried if the row changes between the statement and the lookup. */
const attempts = 5;

type Explanation =
  | { allowed: true; call: Row | null; placedToday: number | null; isListed: boolean; rulesVersion: number | null }
  | { allowed: false; refusal: Refusal };

type CallObservers = {
  onBatch: ObserveBatch;
  onPlaced: () => void;
  /**
   * Called if a key isn't accepted from the client's address, and also if the key isn't active, so that both refusals take equally long.
   */
  onAddressRefused: (refusal: AddressRefusal) => void;
};

export type AddressRefusal = { digest: Digest; address: string; at: Millis; isActive: boolean };

/**
 * Places, cancels and looks up calls. Each operation is one statement for a whole batch, and checks every rule itself. If the statement
 * didn't change a row, a lookup finds out why. The lookup only chooses the refusal or the earlier response.
 */
export function callStore(
  database: Database,
  keyUse: Pick<KeyUse, 'note'>,
  lists: Pick<KnownLists, 'unlistedAt'>,
  { onBatch: observe, onPlaced, onAddressRefused }: CallObservers,
): CallStore {
  const getShare = ({ digest }: { digest: string }) => digest;
  const batching = { size: database.batchSize, maxInFlight: database.maxInFlight, getShare, isSingleRowError };
  const observer =
    (operation: Parameters<ObserveBatch>[0]): BatchObserver =>
    (size) =>
      observe(operation, size);

  const limits = knownLimits();
  const findActive = batched({
    ...batching,
    getShare: getCallerNetwork,
    run: activeKeys(database, limits),
    observe: observer('look up'),
  });
  const queuesIn = perShard((shard) => {
    const options = { ...batching, maxInFlight: shard.maxInFlight };
    const placing = { ...options, countBytes: countVariableBytes, isUndone, observe: observer('place') };
    return {
      explain: {
        request_id: batched({ ...options, run: explainer(shard, 'request_id'), observe: observer('explain') }),
        contact_id: batched({ ...options, run: explainer(shard, 'contact_id'), observe: observer('explain') }),
      },
      insert: batched({ ...placing, ...inserter(shard) }),
      insertCounted: batched({ ...placing, ...countingInserter(shard) }),
      cancel: {
        request_id: batched({ ...options, ...canceller(shard, 'request_id'), isUndone, observe: observer('cancel') }),
        contact_id: batched({ ...options, ...canceller(shard, 'contact_id'), isUndone, observe: observer('cancel') }),
      },
    };
  });
  const queuesOf = (request: KeyedRequest) => queuesIn(shardOf(database, request.campaignId));

  const rules = knownRules(database);
  const loadRules = batched({
    ...batching,
    run: async (batch: KeyedRequest[]) => {
      await rules.load(batch.map(({ campaignId }) => campaignId));
      return batch.map(() => true);
    },
    observe: () => undefined,
  });

  /** Finds out why a statement changed nothing, and updates what the process knows about the key. */
  async function explained(request: KeyedRequest, by: 'request_id' | 'contact_id', name: string, phone = ''): Promise<Explanation> {
    const row = await queuesOf(request).explain[by]({ ...request, limits: request.key.limits, name, phone });
    if (!row['is_active']) return { allowed: false, refusal: 'unauthorized' };
    request.key.limits = limits.read(row);
    if (!acceptsAddress(request)) return { allowed: false, refusal: 'unauthorized' };
    keyUse.note(request);
    if (!row['has_access']) return { allowed: false, refusal: 'campaign-refused' };
    const placedToday = request.key.limits?.callsPerDay == null ? null : Number(row['placed_today']);
    const version = row['rules_version'];
    return {
      allowed: true,
      call: row['contact_id'] == null ? null : row,
      placedToday,
      isListed: Boolean(row['is_listed']),
      rulesVersion: version == null ? null : Number(version),
    };
  }

  function acceptsAddress({ key, digest, address, at }: Omit<KeyedRequest, 'campaignId'>): boolean {
    if (allowsAddress(key.limits, address)) return true;
    onAddressRefused({ digest, address, at, isActive: !isUnknown(key) });
    return false;
  }

  /**
   * Inserts a call if the request is allowed by the limits that the process knows.
   *
   * @returns null if no call was inserted. Otherwise, `placedToday` is how many calls the key has placed today; null if that's unlimited
   */
  async function tryToInsert(request: KeyedRequest, call: NewCall, verdict: Verdict): Promise<{ placedToday: number | null } | null> {
    const { key, address, at } = request;
    const { limits } = key;
    if (!allowsAddress(limits, address)) return null;
    const day = countingDay(limits, at);
    if (day === null) return (await queuesOf(request).insert({ ...request, limits, call, verdict })) ? { placedToday: null } : null;
    // Requests above the limit only read, so that a flood of them doesn't write anything.
    if (key.fullOn === day) return null;
    const placedToday = await queuesOf(request).insertCounted({ ...request, limits, call, verdict, day });
    return placedToday === null ? null : { placedToday };
  }

  return {
    async findActive(request) {
      const key = await findActive(request);
      if (!acceptsAddress({ ...request, key }) || isUnknown(key)) return null;
      keyUse.note(request);
      return key;
    },

    async place(request, call): Promise<Placement> {
      const isTooLate = call.notAfter !== null && call.notAfter < request.at;
      for (let attempt = 0; attempt < attempts; attempt++) {
        const { judgement, verdict } = judgeBy(rules, lists, request, call);
        const isOpen = judgement.kind === 'open' || judgement.kind === 'held';
        const inserted = isTooLate || !isOpen ? null : await tryToInsert(request, call, verdict);
        if (inserted) {
          keyUse.note(request, 'placed');
          onPlaced();
          return { kind: 'placed', heldUntil: verdict.heldUntil, ...inserted };
        }
        const { limits } = request.key;
        const explanation = await explained(request, 'request_id', call.requestId, call.phone);
        if (!explanation.allowed) return { kind: explanation.refusal };
        const { placedToday } = explanation;
        // If the limits have changed, check and count by the new ones, because the response to a repeat also says how many calls are left.
        if (limits?.version !== request.key.limits?.version) continue;
        if (explanation.call) return toRepeat(call, explanation.call, placedToday);
        if (isTooLate) return { kind: 'too-late' };
        if (explanation.isListed) return { kind: 'do-not-call' };
        if (explanation.rulesVersion !== verdict.rulesVersion) {
          await loadRules(request);
          continue;
        }
        if (!isOpen) return { kind: 'not-allowed', objection: judgement };
        if (noteFull(request, placedToday)) return { kind: 'too-many-calls', placedToday };
        // The call is allowed after all, because the key, its creator, the campaign or the rules have changed since the statement. Try
        // again.
      }
      throw unsettled();
    },

    async cancel(request, reference): Promise<Cancellation> {
      const [by, name] =
        'requestId' in reference ? (['request_id', reference.requestId] as const) : (['contact_id', reference.contactId] as const);
      for (let attempt = 0; attempt < attempts; attempt++) {
        const { limits } = request.key;
        const won = allowsAddress(limits, request.address)
          ? await queuesOf(request).cancel[by]({ ...request, limits, name, phone: '' })
          : null;
        if (won && won !== 'shared') {
          keyUse.note(request, 'cancelled');
          return toCancellation(won, request.at);
        }
        const explaining = explained(request, by, name);
        // The call was already cancelled, so a 503 would be wrong.
        const explanation = await (won ? explaining.catch(throwResultUnknown) : explaining);
        if (!explanation.allowed) return { kind: explanation.refusal };
        if (!explanation.call) return { kind: 'call-not-found' };
        const { stage, cancelled_at: cancelledAt } = explanation.call;
        if (stage === stageAfter('cancel', initialStage)) return toCancellation(explanation.call, instant(Number(cancelledAt)));
        if (!stagesBefore('cancel').some((cancellable) => cancellable === stage)) return { kind: 'already-dialed' };
      }
      throw unsettled();
    },

    async authorize(request) {
      const explanation = await explained(request, 'request_id', '');
      return explanation.allowed ? 'authorized' : explanation.refusal;
    },
  };
}

/** Remembers the day if the key has placed all its calls for it. */
function noteFull({ key, at }: KeyedRequest, placedToday: number | null): placedToday is number {
  const day = countingDay(key.limits, at);
  const isFull = placedToday !== null && placedToday >= (key.limits?.callsPerDay ?? 0);
  if (isFull && day !== null) key.fullOn = day;
  else delete key.fullOn;
  return isFull;
}

/**
 * Checks a call against the rules and lists that this process remembers. The statement that places the call makes sure that they're
 * current.
 */
function judgeBy(
  rules: KnownRules,
  lists: Pick<KnownLists, 'unlistedAt'>,
  { campaignId, at }: KeyedRequest,
  call: NewCall,
): { judgement: Judgement; verdict: Verdict } {
  const known = rules.get(campaignId);
  const judgement = judge(known, call, at, at);
  const heldUntil = judgement.kind === 'held' ? judgement.until : null;
  return { judgement, verdict: { rulesVersion: known.version, heldUntil, unlistedAt: lists.unlistedAt(campaignId, call.phone) } };
}

function unsettled(): Problem {
  return new Problem('unavailable', 'The data that this request needs is changing too fast. Try again.', { retryAfter: 1 });
}

/** Inserts calls of keys with a daily call limit. */
function countingInserter(database: Database) {
  const insert = countedInserter(database);
  const confirmOne = readBack(database);
  return {
    async run(batch: CountedPlacing[], beforeCommit: () => void): Promise<(number | null)[]> {
      const groups = placingGroups(batch, ({ day }) => [day]);
      const placed = await insert(groups, new Map(batch.map(({ call, day }) => [call.contactId, day])), beforeCommit);
      return batch.map(({ call }) => placed.get(call.contactId) ?? null);
    },
    confirm: async (batch: CountedPlacing[], placed: (number | null)[]) => {
      const call = batch.find((_, index) => placed[index] !== null);
      await confirmOne?.(call && { campaignId: call.campaignId, contactId: call.call.contactId, state: null });
    },
  };
}

function inserter(database: Database) {
  const insert = insertStatement(database);
  // Use the writing connection, which sees the rows before any other does. `readBack` later checks that other connections see them, too.
  const findInserted = database.prepare(
    { campaign_id: 'text', contact_id: 'text' },
    (rows) => `SELECT r.contact_id FROM ${rows} CROSS JOIN calls
     WHERE calls.campaign_id = r.campaign_id AND calls.contact_id = r.contact_id`,
    'write',
  );
  const confirmOne = readBack(database);
  return {
    async run(batch: Placing[], beforeCommit: () => void): Promise<boolean[]> {
      // Don't use RETURNING, because it would add a tenth to the statement's cost, and nearly always all rows are inserted.
      const count = await insert(placingGroups(batch), beforeCommit);
      if (count === batch.length) return batch.map(() => true);
      if (count === 0) return batch.map(() => false);
      const insertedRows = await findInserted(batch.map(({ campaignId, call }) => [campaignId, call.contactId])).catch(throwResultUnknown);
      const inserted = new Set(insertedRows.map((row) => row['contact_id']));
      return batch.map(({ call }) => inserted.has(call.contactId));
    },
    confirm: async (batch: Placing[], isInserted: boolean[]) => {
      const placed = batch.find((_, index) => isInserted[index]);
      await confirmOne?.(placed && { campaignId: placed.campaignId, contactId: placed.call.contactId, state: null });
    },
  };
}

/** The row of a call that a request cancelled, or `shared` if several requests tried to cancel it and one of them did. */
type Cancelled = Row | 'shared' | null;

function canceller(database: Database, by: 'contact_id' | 'request_id') {
  const statement = database.prepareCounted(
    { ...requestColumns, rows: 'rows' },
    (groups) => `UPDATE calls SET ${cancelledAtSql('r.cancelled_at')}
     FROM ${database.rowsWithin(
       { select: { campaign_id: 'c.id' }, from: `${groups} ${joinAuthorization(database)} WHERE ${isAllowed}` },
       { [by]: 'text', cancelled_at: 'bigint' },
       ['campaign_id', by],
     )}
     WHERE calls.campaign_id = r.campaign_id AND calls.${by} = r.${by} AND ${isUndialed}`,
    { returned: ['campaign_id', 'contact_id', 'request_id'], count: countEnded, rows: 'many' },
  );
  const confirmOne = readBack(database);
  return {
    async run(batch: Naming[], beforeCommit: () => void): Promise<Cancelled[]> {
      const rows = await statement(
        inGroups(batch, ({ name, at }) => [name, at]),
        beforeCommit,
      );
      const changed = new Map(rows.map((row) => [`${row['campaign_id']} ${row[by]}`, row]));
      const targets = batch.map(({ campaignId, name }) => `${campaignId} ${name}`);
      const counts = new Map<string, number>();
      for (const target of targets) counts.set(target, (counts.get(target) ?? 0) + 1);
      // A row doesn't show which request cancelled the call. If several requests name the same call, each of them looks up the result.
      return targets.map((target) => {
        const row = changed.get(target);
        return row === undefined || counts.get(target) === 1 ? (row ?? null) : 'shared';
      });
    },
    confirm: async (_: Naming[], cancelledRows: Cancelled[]) => {
      const cancelledRow = cancelledRows.find((row) => row !== null && row !== 'shared');
      await confirmOne?.(
        cancelledRow && {
          campaignId: String(cancelledRow['campaign_id']),
          contactId: String(cancelledRow['contact_id']),
          state: 'cancelled',
        },
      );
    },
  };
}

/**
 * Stands for a key that doesn't exist or isn't active. Its limits make a request with it take the same steps as one that's refused because
 * of its address. Otherwise, the time that a refusal takes would reveal whether a key exists.
 */
const unknownKey: ActiveKey = {
  expiresAt: null,
  limits: { version: '', addresses: ['192.0.2.0/32'], callsPerDay: null, timeZone: 'UTC' },
};

function isUnknown({ limits }: ActiveKey): boolean {
  return limits === unknownKey.limits;
}

/**
 * Returns the network that a request comes from. Networks take turns in the queue for lookups. Keys don't, because the keys in a flood are
 * made up.
 */
function getCallerNetwork({ address }: { address: string }): string {
  return address.includes(':') ? (toNetworks(address)[0] ?? '') : address;
}

/** Throws ResultUnknown: some calls of the batch were placed or cancelled, but it isn't known which ones, or by which request. */
function throwResultUnknown(cause: unknown): never {
  throw new ResultUnknown(cause);
}

/**
 * Returns a function that finds active keys, and returns {@link unknownKey} for all others. Its statement returns the same columns for each
 * key, and reads limits only if this process doesn't know their version yet, so that all refusals take equally long.
 */
function activeKeys(database: Database, limits: KnownLimits) {
  const look = database.prepare(
    { n: 'bigint', digest: 'text', at: 'bigint' },
    (rows) => `SELECT r.n, u.id IS NOT NULL AS is_active, CASE WHEN u.id IS NOT NULL THEN k.expires_at END AS expires_at,
       CASE WHEN u.id IS NOT NULL THEN k.limits_version END AS limits_version
     FROM ${rows} LEFT JOIN ${keyOfRequest[database.kind]} ON k.digest = r.digest LEFT JOIN users u ON u.id = k.creator_id AND ${keyIsActive}`,
    'read',
  );
  const readLimits = database.prepare(
    { digest: 'text' },
    (rows) =>
      `SELECT k.digest, ${limitColumns(database.kind)} FROM ${rows} CROSS JOIN ${keyOfRequest[database.kind]} WHERE k.digest = r.digest`,
    'read',
  );
  return async (batch: Parameters<CallStore['findActive']>[0][]): Promise<ActiveKey[]> => {
    const rows = await look(batch.map(({ digest, at }, n) => [n, digest, at]));
    const found = rows.map(({ n, is_active: isActive, expires_at: end, limits_version: version }) => {
      const expiresAt = end == null ? null : instant(Number(end));
      return { n: Number(n), expiresAt, limits: isActive ? limits.get(version) : unknownKey.limits };
    });
    const unread = found.flatMap(({ n, limits }) => (limits === undefined ? (batch[n]?.digest ?? []) : []));
    const limitRows = unread.length === 0 ? [] : await readLimits(unread.map((digest) => [digest]));
    const read = new Map(limitRows.map((row) => [row['digest'], limits.read(row)]));
    const keys = batch.map(() => unknownKey);
    // If a key's limits weren't found, the key was revoked in the meantime.
    for (const { n, expiresAt, limits: known = read.get(batch[n]?.digest ?? '') } of found)
      if (known !== undefined) keys[n] = { expiresAt, limits: known };
    return keys;
  };
}

/**
 * Returns a function that checks whether each request's key is active and has access to the campaign, and finds the call that the request
 * names there.
 */
function explainer(database: Database, by: 'contact_id' | 'request_id') {
  const statement = database.prepare(
    { n: 'bigint', ...requestColumns, day: 'text', [by]: 'text', phone: 'text' },
    (rows) => `SELECT r.n, ${limitColumns(database.kind)},
       ${database.isShard ? '' : `CASE WHEN k.calls_per_day IS NOT NULL THEN ${placedToday} END AS placed_today,`} k.id IS NOT NULL AND ${keyIsActive} AS is_active, c.id IS NOT NULL AND ${keyHasAccess} AS has_access,
       x.contact_id, x.request_id, ${stageSql('x')} AS stage, x.placed_at, x.cancelled_at,
       x.phone, x.name, x.time_zone, x.variables, x.not_before, x.not_after, x.response_held_until,
       p.rules_version, ${isListed({ listing: listingSql('a', 'p'), account: 'a.id', phone: 'r.phone', at: 'r.at' })} AS is_listed
     FROM ${rows}
     LEFT JOIN ${keyOfRequest[database.kind]} ON k.digest = r.digest
     LEFT JOIN users u ON u.id = k.creator_id
     LEFT JOIN campaigns c ON c.id = r.campaign_id
     LEFT JOIN accounts a ON a.id = c.account_id
     LEFT JOIN partners p ON p.id = a.partner_id
     LEFT JOIN calls x ON x.campaign_id = c.id AND x.${by} = r.${by}`,
    'read',
  );
  return async (batch: Naming[]): Promise<Row[]> => {
    const answers = await statement(
      batch.map((naming, n) => [n, ...requestRow(naming), countingDay(naming.limits, naming.at), naming.name, naming.phone]),
    );
    const sorted = answers.toSorted((a, b) => Number(a['n']) - Number(b['n']));
    if (!database.isShard) return sorted;
    // If a key's limits have just changed, this count isn't used, because the request is checked again with the new limits.
    const days = batch.map(({ digest, limits, at }): DayOfKey => [digest, countingDay(limits, at) ?? '']);
    const placed = await readPlaced(
      database,
      days.filter(([, day]) => day !== ''),
    );
    return sorted.map((row, n) => ({ ...row, placed_today: placed(days[n]) }));
  };
}

/** Returns the size of a call. Counts only its variables, because everything else in it is short. */
function countVariableBytes({ call: { variables } }: Placing): number {
  if (variables === null) return 0;
  return Object.entries(variables).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0);
}

/** Compares calls with the same request ID. If the bodies are the same, it's a repeat; otherwise, it's a conflict. */
function toRepeat(call: NewCall, row: Row, placedToday: number | null): Placement {
  if (row['phone'] === null) return { kind: 'call-erased' };
  const values = callRow(call);
  const isAnother = Object.keys(callColumns).some((column, index) => column !== 'contact_id' && values[index] !== row[column]);
  if (isAnother) return { kind: 'request-id-conflict' };
  const heldUntil = row['response_held_until'];
  return {
    kind: 'replayed',
    contactId: String(row['contact_id']),
    placedAt: instant(Number(row['placed_at'])),
    heldUntil: heldUntil == null ? null : instant(Number(heldUntil)),
    placedToday,
  };
}

function toCancellation(row: Row, cancelledAt: Millis): Cancellation {
  return { kind: 'cancelled', contactId: String(row['contact_id']), requestId: String(row['request_id']), cancelledAt };
}
