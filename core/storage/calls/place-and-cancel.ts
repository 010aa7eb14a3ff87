import type { Knex } from 'knex';
import { isExpired } from '#contract/expiry.ts';
import { toNarrowestNetwork } from '#contract/text/networks.ts';
import { allowsAddress, countingDay } from '../../domain/api-keys.ts';
import { initialStage, stageAfter, stagesBefore } from '../../domain/calls/call-states.ts';
import { instant, type Millis } from '../../domain/instant.ts';
import type { Digest, KeyLimits } from '../../domain/model.ts';
import type { ActiveKey, CallStore, CampaignRules, Cancellation, KeyedRequest, NewCall, Placement } from '../../domain/ports.ts';
import { Problem, ResultUnknown } from '../../domain/problem.ts';
import { judge } from '../../domain/protection/judge.ts';
import { batched } from '../engine/batch.ts';
import { callLane } from '../engine/call-lanes.ts';
import { type BatchRows, type Lane, perLane, type Row, readSql, type Value } from '../engine/database.ts';
import { isSingleRowError, isUndone } from '../engine/errors.ts';
import { authorization, type KnownLimits, keyByDigest, knownLimits, limitColumns } from '../keys/authorization.ts';
import type { KeyUse } from '../keys/key-use.ts';
import { type KnownLists, type KnownRules, knownRules } from '../protection/known.ts';

/** Observes the number of requests that shared a statement. */
export type ObserveBatch = (operation: 'look up' | 'place' | 'cancel' | 'explain', size: number) => void;

export type AddressRefusal = { digest: Digest; address: string; at: Millis; isActive: boolean };

type CallObservers = {
  onBatch: ObserveBatch;
  onPlaced: () => void;
  /**
   * Called if a key isn't accepted from the client's address, and also if the key isn't active, so that both refusals take equally long.
   */
  onAddressRefused: (refusal: AddressRefusal) => void;
};

/**
 * What a process remembers about a request's key and campaign. It decides nothing: each has a version, and the statement changes something
 * only if the versions are still current.
 */
type Known = { limits: KeyLimits | null; rules: CampaignRules };

/**
 * A request to place a call, checked by what's known.
 *
 * @property day the day that the call counts for, if the key has a daily call limit
 * @property unlistedVersion a version of the do-not-call lists that doesn't contain the number
 */
type Placing = KeyedRequest &
  Known & {
    call: NewCall;
    refusal: Extract<Placement, { kind: 'too-late' | 'not-allowed' }> | null;
    heldUntil: Millis | null;
    unlistedVersion: number | null;
    day: string | null;
  };

/** The maximum number of times that a request is tried if the row changes between the statement and the lookup. */
const attempts = 5;

/** If a statement didn't change a row, a lookup finds out why. It only chooses the refusal or the earlier response. */
export function callStore(
  database: Lane,
  keyUse: Pick<KeyUse, 'note'>,
  lists: Pick<KnownLists, 'unlistedVersion'>,
  { onBatch, onPlaced, onAddressRefused }: CallObservers,
): CallStore {
  const limitsByVersion = knownLimits();
  const rules = knownRules(database);
  const { findKey, loadRules, inLane } = batches(database, limitsByVersion, rules, onBatch);
  const batchesFor = ({ campaignId }: KeyedRequest) => inLane(callLane(database, campaignId));

  return {
    async place(request, call) {
      let known: Known = { limits: request.key.limits, rules: rules.get(request.campaignId) };
      for (let attempt = 0; attempt < attempts; attempt++) {
        const placing = check(request, call, known);
        const inserted = await insertIfAllowed(placing);
        if (inserted) {
          keyUse.note(request, 'placed');
          onPlaced();
          return { kind: 'placed', contactId: call.contactId, placedAt: request.at, heldUntil: placing.heldUntil, ...inserted };
        }
        const found = await lookUp(placing);
        if (found.kind !== 'stale') return found;
        known = found.fresh;
      }
      throw unsettled();
    },

    async cancel(request, reference): Promise<Cancellation> {
      const [by, name] =
        'requestId' in reference ? (['request_id', reference.requestId] as const) : (['contact_id', reference.contactId] as const);
      let { limits } = request.key;
      for (let attempt = 0; attempt < attempts; attempt++) {
        const naming = { ...request, limits, name, phone: '' };
        const cancelled = allowsAddress(limits, request.address) ? await batchesFor(request).cancel[by](naming) : null;
        if (cancelled && cancelled !== 'shared') {
          keyUse.note(request, 'cancelled');
          return toCancellation(cancelled, request.at);
        }
        const explaining = explain(naming, by);
        // If several requests cancelled the call together, it was already cancelled, so a 503 would be wrong.
        const found = await (cancelled ? explaining.catch(throwResultUnknown) : explaining);
        if ('refusal' in found) return { kind: found.refusal };
        if (!found.call) return { kind: 'call-not-found' };
        const { stage, cancelled_at: cancelledAt } = found.call;
        if (stage === stageAfter('cancel', initialStage)) return toCancellation(found.call, instant(Number(cancelledAt)));
        if (!stagesBefore('cancel').some((cancellable) => cancellable === stage)) return { kind: 'already-dialed' };
        ({ limits } = found);
      }
      throw unsettled();
    },

    async findActive(request) {
      const key = await findKey(request);
      if (!acceptsAddress({ ...request, key }) || isUnknown(key)) return null;
      keyUse.note(request);
      return key;
    },

    async authorize(request) {
      const found = await explain({ ...request, limits: request.key.limits, name: '', phone: '' }, 'request_id');
      return 'refusal' in found ? found.refusal : 'authorized';
    },
  };

  function check(request: KeyedRequest, call: NewCall, known: Known): Placing {
    const { campaignId, at } = request;
    const judgement = judge(known.rules, call, at, at);
    const isOpen = judgement.kind === 'open' || judgement.kind === 'held';
    const isTooLate = call.notAfter !== null && call.notAfter < at;
    return {
      ...request,
      call,
      limits: known.limits,
      rules: known.rules,
      refusal: isTooLate ? { kind: 'too-late' } : isOpen ? null : { kind: 'not-allowed', objection: judgement },
      heldUntil: judgement.kind === 'held' ? judgement.until : null,
      unlistedVersion: lists.unlistedVersion(campaignId, call.phone),
      day: countingDay(known.limits, at),
    };
  }

  /**
   * Inserts a call if what's known allows it. Requests above the key's daily limit only read, so that a flood of them doesn't write anything.
   *
   * @returns null if no call was inserted. Otherwise, `placedToday` is how many calls the key has placed today; null if that's unlimited
   */
  async function insertIfAllowed(placing: Placing): Promise<{ placedToday: number | null } | null> {
    const { key, address, limits, refusal, day } = placing;
    if (refusal || !allowsAddress(limits, address) || (day !== null && key.fullOn === day)) return null;
    if (day === null) return (await batchesFor(placing).insert(placing)) ? { placedToday: null } : null;
    const placedToday = await batchesFor(placing).insertCounted(placing);
    return placedToday === null ? null : { placedToday };
  }

  /**
   * Finds out why a call wasn't inserted: it was already placed, it's refused, or something has changed since it was checked.
   *
   * @returns the response, or what's known now
   */
  async function lookUp(placing: Placing): Promise<Placement | { kind: 'stale'; fresh: Known }> {
    const { call, rules, refusal } = placing;
    const found = await explain({ ...placing, name: call.requestId, phone: call.phone }, 'request_id');
    if ('refusal' in found) return { kind: found.refusal };
    const { limits, placedToday } = found;
    // Check and count by the new limits, because the response to a repeat also says how many calls are left.
    if (limits?.version !== placing.limits?.version) return { kind: 'stale', fresh: { limits, rules } };
    if (found.call) return toRepeat(call, found.call, placedToday);
    if (refusal?.kind === 'too-late') return refusal;
    if (found.isListed) return { kind: 'do-not-call' };
    if (found.rulesVersion !== rules.version) return { kind: 'stale', fresh: { limits, rules: await loadRules(placing) } };
    if (refusal) return refusal;
    if (noteFull(placing, placedToday)) return { kind: 'too-many-calls', placedToday };
    // The call is allowed after all, because the key, its creator, the campaign or the lists have changed since the statement.
    return { kind: 'stale', fresh: { limits, rules } };
  }

  /** Reads why a statement changed nothing, and updates the limits of `request.key`, which http remembers. */
  async function explain(request: Naming, by: 'request_id' | 'contact_id') {
    const row = await batchesFor(request).explain[by](request);
    if (!row['is_active']) return { refusal: 'unauthorized' } as const;
    const limits = limitsByVersion.read(row);
    request.key.limits = limits;
    if (!acceptsAddress(request)) return { refusal: 'unauthorized' } as const;
    keyUse.note(request);
    if (!row['has_access']) return { refusal: 'campaign-refused' } as const;
    const version = row['rules_version'];
    return {
      limits,
      call: row['contact_id'] == null ? null : row,
      placedToday: limits?.callsPerDay == null ? null : Number(row['placed_today']),
      isListed: Boolean(row['is_listed']),
      rulesVersion: version == null ? null : Number(version),
    };
  }

  function acceptsAddress({ key, digest, address, at }: Omit<KeyedRequest, 'campaignId'>): boolean {
    if (allowsAddress(key.limits, address)) return true;
    onAddressRefused({ digest, address, at, isActive: !isUnknown(key) });
    return false;
  }
}

function noteFull({ key, at }: KeyedRequest, placedToday: number | null): placedToday is number {
  const day = countingDay(key.limits, at);
  const isFull = placedToday !== null && placedToday >= (key.limits?.callsPerDay ?? 0);
  if (isFull && day !== null) key.fullOn = day;
  else delete key.fullOn;
  return isFull;
}

/** Compares calls with the same request ID. If the bodies are the same, it's a repeat; otherwise, it's a conflict. */
function toRepeat(call: NewCall, row: Row, placedToday: number | null): Placement {
  if (row['phone'] === null) return { kind: 'call-erased' };
  const values = callRow(call);
  if (callColumns.some((column, n) => column !== 'contact_id' && values[n] !== row[column])) return { kind: 'request-id-conflict' };
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

function unsettled(): Problem {
  return new Problem('unavailable', 'The data that this request needs is changing too fast. Try again.', { retryAfter: 1 });
}

/** Throws ResultUnknown: some calls of the batch were placed or cancelled, but it isn't known which ones, or by which request. */
function throwResultUnknown(cause: unknown): never {
  throw new ResultUnknown(cause);
}

/*
 * The batches. In each, a request waits for others to share its statement.
 */

/** A request with one of the call's two identifiers. @property phone empty unless the request places a call */
type Naming = KeyedRequest & { limits: KeyLimits | null; name: string; phone: string };

function batches(database: Lane, limitsByVersion: KnownLimits, rules: KnownRules, onBatch: ObserveBatch) {
  const getShare = ({ digest }: { digest: string }) => digest;
  const batching = { maxInFlight: database.maxInFlight, getShare, isSingleRowError };
  const observer = (operation: Parameters<ObserveBatch>[0]) => (size: number) => onBatch(operation, size);
  return {
    findKey: batched({
      ...batching,
      // Networks take turns, and not keys, because a flood can use a different made-up key for each request.
      getShare: ({ address }) => toNarrowestNetwork(address),
      run: keyFinder(database, limitsByVersion),
      observe: observer('look up'),
    }),
    loadRules: batched({
      ...batching,
      run: async (batch: KeyedRequest[]) => {
        const loaded = await rules.load(batch.map(({ campaignId }) => campaignId));
        return batch.map(({ campaignId }) => loaded(campaignId));
      },
      observe: () => undefined,
    }),
    inLane: perLane((lane) => {
      const options = { ...batching, maxInFlight: lane.maxInFlight };
      const placing = { ...options, countBytes: countVariableBytes, isUndone, observe: observer('place') };
      return {
        insert: batched({ ...placing, ...inserter(lane) }),
        insertCounted: batched({ ...placing, ...countingInserter(lane) }),
        cancel: {
          request_id: batched({ ...options, ...canceller(lane, 'request_id'), isUndone, observe: observer('cancel') }),
          contact_id: batched({ ...options, ...canceller(lane, 'contact_id'), isUndone, observe: observer('cancel') }),
        },
        explain: {
          request_id: batched({ ...options, run: explainer(lane, 'request_id'), observe: observer('explain') }),
          contact_id: batched({ ...options, run: explainer(lane, 'contact_id'), observe: observer('explain') }),
        },
      };
    }),
  };
}

/** Returns the size of a call. Counts only its variables, because everything else in it is short. */
function countVariableBytes({ call: { variables } }: Placing): number {
  if (variables === null) return 0;
  return Object.entries(variables).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0);
}

type Group = { first: Placing | Naming; at: Millis; isExpired: boolean; shared: readonly Value[]; rows: Value[][] };

/**
 * Groups the requests of a batch that have the same key, campaign, limits and other shared values, because one lookup decides for all of
 * them. A group has the time of its latest request. That doesn't change the results of its earlier requests, because requests before and
 * after the key's expiry are in different groups.
 */
function inGroups<Request extends Placing | Naming>(
  batch: readonly Request[],
  toRow: (request: Request) => Value[],
  toShared: (request: Request) => readonly Value[] = () => [],
): Group[] {
  const byDigest = new Map<Digest, Group[]>();
  for (const request of batch) {
    const { digest, at } = request;
    const candidate = { first: request, at, isExpired: isExpired(request.key.expiresAt, at), shared: toShared(request), rows: [] };
    const groups = byDigest.get(digest);
    let group = groups?.find((group) => isSameGroup(group, candidate));
    if (!group) {
      group = candidate;
      if (groups) groups.push(group);
      else byDigest.set(digest, [group]);
    }
    if (at > group.at) group.at = at;
    group.rows.push(toRow(request));
  }
  return [...byDigest.values()].flat();
}

function isSameGroup(a: Group, b: Group): boolean {
  return (
    a.first.campaignId === b.first.campaignId &&
    a.first.limits?.version === b.first.limits?.version &&
    a.isExpired === b.isExpired &&
    a.shared.every((value, index) => value === b.shared[index])
  );
}

function toGroupRow({ first, at, shared, rows }: Group): BatchRows {
  return [...requestRow({ ...first, at }), ...shared, rows];
}

function requestRow({ digest, campaignId, at, limits }: Placing | Naming): Value[] {
  return [digest, campaignId, at, limits === null ? null : limits.version];
}

/** The columns of a call that are set by the request, in the order of {@link callRow} and of the statements. */
const callColumns = ['contact_id', 'request_id', 'phone', 'name', 'time_zone', 'variables', 'not_before', 'not_after'];

function callRow(call: NewCall): Value[] {
  // Sorted by name, so that the same variables always have the same text.
  const variables = call.variables && JSON.stringify(Object.entries(call.variables).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return [call.contactId, call.requestId, call.phone, call.name, call.timeZone, variables, call.notBefore, call.notAfter];
}

function placingRow({ at, call, heldUntil }: Placing): Value[] {
  const { notBefore } = call;
  return [...callRow(call), at, heldUntil ?? (notBefore !== null && notBefore > at ? notBefore : at), heldUntil];
}

function placingGroups(batch: readonly Placing[]): Group[] {
  return inGroups(batch, placingRow, ({ rules, unlistedVersion, day }) => [rules.version, unlistedVersion, ...(day === null ? [] : [day])]);
}

/*
 * The statements.
 */

function inserter(lane: Lane) {
  const place = lane.prepare(readSql(import.meta.url, 'place', lane.kind, authorization), 'write');
  // Use the writing connection, which sees the rows before any other does. `readBack` later checks that other connections see them, too.
  const findInserted = lane.prepare(
    `SELECT contact_id FROM {{rows}} CROSS JOIN calls
     WHERE calls.campaign_id = e.value->>0 AND calls.contact_id = e.value->>1`,
    'write',
  );
  const confirmOne = readBack(lane);
  return {
    async run(batch: Placing[], beforeCommit: () => void): Promise<boolean[]> {
      const { changed } = await place(placingGroups(batch).map(toGroupRow), beforeCommit);
      if (changed === batch.length) return batch.map(() => true);
      if (changed === 0) return batch.map(() => false);
      const keys = batch.map(({ campaignId, call }) => [campaignId, call.contactId]);
      const { rows } = await findInserted(keys).catch(throwResultUnknown);
      const inserted = new Set(rows.map((row) => row['contact_id']));
      return batch.map(({ call }) => inserted.has(call.contactId));
    },
    confirm: async (batch: Placing[], isInserted: boolean[]) => {
      const placed = batch.find((_, index) => isInserted[index]);
      await confirmOne?.(placed && { campaignId: placed.campaignId, contactId: placed.call.contactId, state: null });
    },
  };
}

/**
 * Inserts calls of keys with a daily call limit, and counts them, in one transaction. It inserts a key's calls only up to the limit. Repeats
 * don't count. Calls of keys without a limit don't use this, because it takes three statements instead of one. Its results are how many
 * calls the key has placed on that day; null if the call wasn't inserted.
 */
function countingInserter(lane: Lane) {
  const { kind } = lane;
  const days = keyDays(lane);
  const lockDays = kind === 'postgres' ? lane.prepare(readSql(import.meta.url, 'lock-days', kind, authorization), 'write') : null;
  const place = lane.prepare(readSql(import.meta.url, 'place-with-limit', kind, { ...authorization, ...days.parts }), 'write');
  const countPlaced = lane.prepare(
    `INSERT INTO api_key_days (api_key_id, day, placed)
     SELECT e.value->>0, e.value->>1, CAST(e.value->>2 AS bigint) FROM {{rows}} WHERE true
     ON CONFLICT (api_key_id, day) DO UPDATE SET placed = api_key_days.placed + excluded.placed
     RETURNING api_key_id, day, placed`,
    'write',
  );
  const confirmOne = readBack(lane);

  const insertAndCount = (batch: Placing[], beforeCommit: () => void) =>
    lane.write.transaction(async (trx) => {
      beforeCommit();
      const groups = placingGroups(batch);
      await lockDays?.(groups.map(toGroupRow), undefined, trx);
      const ofKeys = groups.map(({ first: { digest, limits }, at }): DayOfKey => [digest, countingDay(limits, at)]);
      const rows = await days.addPlaced(groups.map(toGroupRow), ofKeys, trx);
      const inserted = await place(rows, undefined, trx);
      const dayOf = new Map(batch.map(({ call, day }) => [call.contactId, day]));
      return countByDay(
        inserted.rows.map(({ contact_id, api_key_id }) => [String(contact_id), `${api_key_id} ${dayOf.get(String(contact_id))}`]),
        trx,
      );
    });

  /** Counts the inserted calls. @returns each call's contact ID with the new count of its key's day */
  async function countByDay(inserted: [contactId: string, keyAndDay: string][], trx: Knex.Transaction): Promise<Map<string, number>> {
    const added = [...Map.groupBy(inserted, ([, keyAndDay]) => keyAndDay)].map(([keyAndDay, calls]) => [
      ...keyAndDay.split(' '),
      calls.length,
    ]);
    if (added.length === 0) return new Map();
    const { rows } = await countPlaced(added, undefined, trx);
    const placed = new Map(rows.map((row) => [`${row['api_key_id']} ${row['day']}`, Number(row['placed'])]));
    return new Map(inserted.map(([contactId, keyAndDay]) => [contactId, placed.get(keyAndDay) ?? 0]));
  }

  return {
    async run(batch: Placing[], beforeCommit: () => void): Promise<(number | null)[]> {
      const placed = await insertAndCount(batch, beforeCommit);
      return batch.map(({ call }) => placed.get(call.contactId) ?? null);
    },
    confirm: async (batch: Placing[], placed: (number | null)[]) => {
      const call = batch.find((_, index) => placed[index] !== null);
      await confirmOne?.(call && { campaignId: call.campaignId, contactId: call.call.contactId, state: null });
    },
  };
}

/** The row of a call that a request cancelled, or `shared` if several requests tried to cancel it and one of them did. */
type Cancelled = Row | 'shared' | null;

function canceller(lane: Lane, by: 'contact_id' | 'request_id') {
  const cancel = lane.prepare(readSql(import.meta.url, 'cancel', lane.kind, { ...authorization, by }), 'end');
  const confirmOne = readBack(lane);
  return {
    async run(batch: Naming[], beforeCommit: () => void): Promise<Cancelled[]> {
      const groups = inGroups(batch, ({ name, at }) => [name, at]);
      const { rows } = await cancel(groups.map(toGroupRow), beforeCommit);
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
      const row = cancelledRows.find((row) => row !== null && row !== 'shared');
      await confirmOne?.(row && { campaignId: String(row['campaign_id']), contactId: String(row['contact_id']), state: 'cancelled' });
    },
  };
}

function explainer(lane: Lane, by: 'contact_id' | 'request_id') {
  const { kind } = lane;
  const days = keyDays(lane);
  const parts = { ...authorization, ...days.parts, by, key: keyByDigest[kind], limits: limitColumns(kind) };
  const explain = lane.prepare(readSql(import.meta.url, 'explain', kind, parts), 'read');
  return async (batch: Naming[]): Promise<Row[]> => {
    const ofKeys = batch.map(({ digest, limits, at }): DayOfKey => [digest, countingDay(limits, at)]);
    const requests = batch.map((naming, n) => [n, ...requestRow(naming), ofKeys[n]?.[1] ?? null, naming.name, naming.phone]);
    const { rows } = await explain(await days.addPlaced(requests, ofKeys));
    return rows.toSorted((a, b) => Number(a['n']) - Number(b['n']));
  };
}

type DayOfKey = readonly [digest: Digest, day: string | null];

/**
 * How a statement finds out how many calls a key has placed on a day. If the counts may be on another node than the calls, they're read
 * first, and each row has its count.
 */
function keyDays(lane: Lane) {
  const ofDay = 'coalesce((SELECT d.placed FROM api_key_days d WHERE d.api_key_id = k.id AND d.day = r.day), 0)';
  if (!lane.hasOnlyCalls) return { parts: { placedToday: ofDay }, addPlaced: async (rows: readonly BatchRows[]) => rows };
  const read = lane.prepare(
    `SELECT e.value->>0 AS digest, e.value->>1 AS day, d.placed
     FROM {{rows}} CROSS JOIN LATERAL (SELECT * FROM api_keys WHERE digest = e.value->>0 LIMIT 1) k CROSS JOIN api_key_days d
     WHERE d.api_key_id = k.id AND d.day = e.value->>1`,
    'read',
  );
  return {
    parts: { placedToday: 'r.placed' },
    async addPlaced(rows: readonly BatchRows[], days: readonly DayOfKey[], trx?: Knex.Transaction): Promise<readonly BatchRows[]> {
      const counted = days.filter(([, day]) => day !== null);
      const found = counted.length === 0 ? { rows: [] } : await read(counted, undefined, trx);
      const placed = new Map(found.rows.map((row) => [`${row['digest']} ${row['day']}`, Number(row['placed'])]));
      return rows.map((row, n) => [...row, placed.get(days[n]?.join(' ') ?? '') ?? 0]);
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
 * Returns a function that finds active keys, and {@link unknownKey} instead of any other. It reads only limits that aren't known yet, so that
 * all refusals take equally long.
 */
function keyFinder(database: Lane, limitsByVersion: KnownLimits) {
  const { kind } = database;
  const findKey = database.prepare(readSql(import.meta.url, 'find-key', kind, { ...authorization, key: keyByDigest[kind] }), 'read');
  const readLimits = database.prepare(
    `SELECT k.digest, ${limitColumns(kind)}
     FROM (SELECT e.value->>0 AS digest FROM {{rows}}) AS r CROSS JOIN ${keyByDigest[kind]} WHERE k.digest = r.digest`,
    'read',
  );
  return async (batch: Parameters<CallStore['findActive']>[0][]): Promise<ActiveKey[]> => {
    const { rows } = await findKey(batch.map(({ digest, at }, n) => [n, digest, at]));
    const keysFound: [n: number, isActive: boolean, end: number | null, limitsVersion: string | null][] = JSON.parse(
      String(rows[0]?.['found']),
    );
    const found = keysFound.map(([n, isActive, end, version]) => {
      const expiresAt = end === null ? null : instant(end);
      return { n, expiresAt, limits: isActive ? limitsByVersion.get(version) : unknownKey.limits };
    });
    const unread = found.flatMap(({ n, limits }) => (limits === undefined ? (batch[n]?.digest ?? []) : []));
    const read = unread.length === 0 ? { rows: [] } : await readLimits(unread.map((digest) => [digest]));
    const byDigest = new Map(read.rows.map((row) => [row['digest'], limitsByVersion.read(row)]));
    const keys = batch.map(() => unknownKey);
    // If a key's limits weren't found, the key was revoked in the meantime.
    for (const { n, expiresAt, limits: known = byDigest.get(batch[n]?.digest ?? '') } of found)
      if (known !== undefined) keys[n] = { expiresAt, limits: known };
    return keys;
  };
}

type WrittenCall = { campaignId: string; contactId: string; state: 'cancelled' | null };

/**
 * Reads one row of a batch through another connection before any request of the batch gets its response. SQLite doesn't commit while
 * another writing statement is active on the same connection, and doesn't report an error: in a test, 50 of 50 acknowledged calls were lost
 * that way. PostgreSQL reports its commits correctly, and doesn't need this.
 *
 * @throws Problem `unavailable` if the row is definitely not in the database. In that case, only the writing connection saw it, and that
 * connection has been closed
 */
function readBack(lane: Lane): ((written: WrittenCall | undefined) => Promise<void>) | undefined {
  if (lane.kind === 'postgres') return undefined;
  const find = lane.prepare(
    `SELECT 1 AS found FROM calls WHERE campaign_id = ?1->>0 AND contact_id = ?1->>1 AND state = coalesce(?1->>2, state)`,
    'read back',
  );
  return async (written) => {
    if (!written) return;
    const row = [written.campaignId, written.contactId, written.state];
    const isFound = async () => (await find(row)).rows.length > 0;
    if (await isFound()) return;
    const error = new Error("A write wasn't committed: only the connection that wrote it sees it.");
    await lane.discardWriter(error);
    // Closing the connection may have committed the row after all. Whether it did is certain only once another connection has had the lock.
    await lane.write.transaction(async () => undefined);
    if (await isFound()) return;
    throw new Problem('unavailable', 'The database lost the write. Try again with the same request ID.', {
      cause: error,
      retryAfter: 2,
    });
  };
}
