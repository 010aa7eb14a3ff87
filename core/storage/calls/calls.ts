import { initialStage, stageAfter, stagesBefore } from '../../domain/calls/call-states.ts';
import { instant } from '../../domain/instant.ts';
import type { NewCall } from '../../domain/model.ts';
import type { ActiveKey, CallStore, Cancellation, KeyedRequest, Placement, Refusal } from '../../domain/ports.ts';
import { Problem, ResultUnknown } from '../../domain/problem.ts';
import { networksOf } from '../../domain/sign-in/networks.ts';
import { type BatchObserver, batched } from '../engine/batch.ts';
import type { Database, Row, Value } from '../engine/database.ts';
import { isSingleRowError, isUndone } from '../engine/errors.ts';
import { isAllowed, joinAuthorization, keyHasAccess, keyIsActive, keyOfRequest } from '../keys/authorization.ts';
import type { KeyUse } from '../keys/key-use.ts';
import { cancelledAtSql, isUndialed, stageSql } from './call-stages.ts';
import { readBack } from './read-back.ts';

/** Observes the number of requests that shared a statement. */
export type ObserveBatch = (operation: 'look up' | 'place' | 'cancel' | 'explain', size: number) => void;

const requestColumns = { digest: 'text', campaign_id: 'text', at: 'bigint' } as const;
const callColumns = {
  contact_id: 'text',
  request_id: 'text',
  phone: 'text',
  name: 'text',
  time_zone: 'text',
  variables: 'text',
  not_before: 'bigint',
  not_after: 'bigint',
} as const;

type Placing = KeyedRequest & { call: NewCall };
/** A request with one of the call's two identifiers. */
type Naming = KeyedRequest & { name: string };

/** The table's key. The index by contact alone contains only calls that were handed off. */
export const callKey: readonly ['campaign_id', 'contact_id'] = ['campaign_id', 'contact_id'];

/** Retries if the row changed between the statement and the lookup. */
const attempts = 5;

type Explanation = { allowed: true; call: Row | null } | { allowed: false; refusal: Refusal };

/**
 * Places, cancels and looks up calls. Each operation is one statement for a whole batch, and checks every rule itself. If the statement
 * didn't change a row, a lookup finds out why. The lookup only chooses the refusal or the earlier response.
 */
export function callStore(database: Database, keyUse: KeyUse, observe: ObserveBatch, onPlaced: () => void): CallStore {
  const shareOf = ({ digest }: { digest: string }) => digest;
  const batching = { size: database.batchSize, maxInFlight: database.maxInFlight, shareOf, isSingleRowError };
  const observer =
    (operation: Parameters<ObserveBatch>[0]): BatchObserver =>
    (size) =>
      observe(operation, size);

  const explain = {
    request_id: batched({ ...batching, run: explainer(database, 'request_id'), observe: observer('explain') }),
    contact_id: batched({ ...batching, run: explainer(database, 'contact_id'), observe: observer('explain') }),
  };
  const findActive = batched({ ...batching, shareOf: networkOfCaller, run: activeKeys(database), observe: observer('look up') });
  const insert = batched({ ...batching, ...inserter(database), bytesOf: bytesOfVariables, isUndone, observe: observer('place') });
  const cancel = {
    request_id: batched({ ...batching, ...canceller(database, 'request_id'), isUndone, observe: observer('cancel') }),
    contact_id: batched({ ...batching, ...canceller(database, 'contact_id'), isUndone, observe: observer('cancel') }),
  };

  async function explained(request: KeyedRequest, by: keyof typeof explain, name: string): Promise<Explanation> {
    const row = await explain[by]({ ...request, name });
    if (!row['is_active']) return { allowed: false, refusal: 'unauthorized' };
    keyUse.note(request.digest, request.at);
    if (!row['has_access']) return { allowed: false, refusal: 'campaign-refused' };
    return { allowed: true, call: row['contact_id'] == null ? null : row };
  }

  return {
    findActive,

    async place(request, call): Promise<Placement> {
      const placing = { ...request, call };
      const isTooLate = call.notAfter !== null && call.notAfter < request.at;
      for (let attempt = 0; attempt < attempts; attempt++) {
        if (!isTooLate && (await insert(placing))) {
          keyUse.note(request.digest, request.at, 'placed');
          onPlaced();
          return { kind: 'placed' };
        }
        const explanation = await explained(request, 'request_id', call.requestId);
        if (!explanation.allowed) return { kind: explanation.refusal };
        if (explanation.call) return asRepeat(call, explanation.call);
        if (isTooLate) return { kind: 'too-late' };
        // The call is allowed now, because the key, its creator or the campaign has changed since the statement.
      }
      throw unsettled();
    },

    async cancel(request, reference): Promise<Cancellation> {
      const [by, name] =
        'requestId' in reference ? (['request_id', reference.requestId] as const) : (['contact_id', reference.contactId] as const);
      for (let attempt = 0; attempt < attempts; attempt++) {
        const won = await cancel[by]({ ...request, name });
        if (won) {
          keyUse.note(request.digest, request.at, 'cancelled');
          return asCancelled(won);
        }
        const explanation = await explained(request, by, name);
        if (!explanation.allowed) return { kind: explanation.refusal };
        if (!explanation.call) return { kind: 'call-not-found' };
        const { stage } = explanation.call;
        if (stage === stageAfter('cancel', initialStage)) return asCancelled(explanation.call);
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

function unsettled(): Problem {
  return new Problem('unavailable', 'The data that this request needs is changing too fast. Try again.', { retryAfter: 1 });
}

function inserter(database: Database) {
  const columns = Object.keys(callColumns);
  const insert = database.prepareChange(
    { ...requestColumns, ...callColumns },
    (rows) => `INSERT INTO calls (campaign_id, account_id, api_key_id, state, placed_at, due_at, ${columns.join(', ')})
     SELECT c.id, c.account_id, k.id, '${initialStage}', r.at, CASE WHEN r.not_before > r.at THEN r.not_before ELSE r.at END,
       ${columns.map((column) => `r.${column}`).join(', ')}
     FROM ${rows} ${joinAuthorization(database)}
     WHERE ${isAllowed}
     ON CONFLICT (campaign_id, request_id) DO NOTHING`,
  );
  // Use the writing connection, which sees the rows before any other can. `readBack` checks later whether others see them.
  const findInserted = database.prepare(
    { campaign_id: 'text', contact_id: 'text' },
    (rows) => `SELECT r.contact_id FROM ${rows} CROSS JOIN calls
     WHERE calls.campaign_id = r.campaign_id AND calls.contact_id = r.contact_id`,
    'write',
  );
  const confirmOne = readBack(database);
  return {
    async run(batch: Placing[], beforeCommit: () => void): Promise<boolean[]> {
      const rows = sortForLocking(batch, ({ call }) => call.requestId).map((placing) => [...requestRow(placing), ...callRow(placing.call)]);
      // RETURNING would add a tenth to the statement's cost, and nearly always all rows are inserted.
      const count = await insert(rows, beforeCommit);
      if (count === batch.length) return batch.map(() => true);
      if (count === 0) return batch.map(() => false);
      const found = await findInserted(batch.map(({ campaignId, call }) => [campaignId, call.contactId])).catch(asUnknown);
      const inserted = new Set(found.map((row) => row['contact_id']));
      return batch.map(({ call }) => inserted.has(call.contactId));
    },
    confirm: async (batch: Placing[], isInserted: boolean[]) => {
      const placed = batch.find((_, index) => isInserted[index]);
      await confirmOne?.(placed && { campaignId: placed.campaignId, contactId: placed.call.contactId, state: null });
    },
  };
}

function canceller(database: Database, by: 'contact_id' | 'request_id') {
  const statement = database.prepare(
    { ...requestColumns, [by]: 'text' },
    (rows) => `UPDATE calls SET ${cancelledAtSql('r.at')}
     FROM ${rows} ${joinAuthorization(database)}
     WHERE ${isAllowed} AND calls.campaign_id = c.id AND calls.${by} = r.${by} AND ${isUndialed}
     RETURNING calls.campaign_id, calls.contact_id, calls.request_id, calls.cancelled_at`,
    'write',
  );
  const targetOf = ({ campaignId, name }: Naming) => `${campaignId} ${name}`;
  const confirmOne = readBack(database);
  return {
    async run(batch: Naming[], beforeCommit: () => void): Promise<(Row | null)[]> {
      const named = sortForLocking(batch, ({ name }) => name).map((naming) => [...requestRow(naming), naming.name]);
      const rows = await statement(named, beforeCommit);
      const changed = new Map(rows.map((row) => [`${row['campaign_id']} ${row[by]}`, row]));
      // A row doesn't show which request cancelled the call. If several did, each gets its own explanation.
      const asked = Map.groupBy(batch, targetOf);
      return batch.map((naming) => (asked.get(targetOf(naming))?.length === 1 ? (changed.get(targetOf(naming)) ?? null) : null));
    },
    confirm: async (_: Naming[], cancelledRows: (Row | null)[]) => {
      const row = cancelledRows.find((one) => one !== null);
      await confirmOne?.(row && { campaignId: String(row['campaign_id']), contactId: String(row['contact_id']), state: 'cancelled' });
    },
  };
}

/** Returns the network that a request comes from. Requests share the queue by network, because the keys in a flood are invented. */
function networkOfCaller({ address }: { address: string }): string {
  return address.includes(':') ? (networksOf(address)[0] ?? '') : address;
}

/** Throws an unknown result: some calls of the batch were placed, but it isn't known which. */
function asUnknown(cause: unknown): never {
  throw new ResultUnknown(cause);
}

/** Returns a function that checks whether each key is active. */
function activeKeys(database: Database) {
  const statement = database.prepare(
    { n: 'bigint', digest: 'text', at: 'bigint' },
    (rows) => `SELECT r.n, k.expires_at FROM ${rows} CROSS JOIN ${keyOfRequest[database.kind]} CROSS JOIN users u
     WHERE k.digest = r.digest AND u.id = k.creator_id AND ${keyIsActive}`,
    'read',
  );
  return async (batch: Parameters<CallStore['findActive']>[0][]): Promise<(ActiveKey | null)[]> => {
    const rows = await statement(batch.map(({ digest, at }, n) => [n, digest, at]));
    const found = new Map(rows.map(({ n, expires_at: end }) => [n, { expiresAt: end == null ? null : instant(Number(end)) }]));
    return batch.map((_, n) => found.get(n) ?? null);
  };
}

/**
 * Returns a function that checks whether each request's key is active and has access to the campaign, and finds the call that the request
 * names there.
 */
function explainer(database: Database, by: 'contact_id' | 'request_id') {
  const statement = database.prepare(
    { n: 'bigint', ...requestColumns, [by]: 'text' },
    (rows) => `SELECT r.n, k.id IS NOT NULL AND ${keyIsActive} AS is_active, c.id IS NOT NULL AND ${keyHasAccess} AS has_access,
       x.contact_id, x.request_id, ${stageSql('x')} AS stage, x.placed_at, x.cancelled_at,
       x.phone, x.name, x.time_zone, x.variables, x.not_before, x.not_after
     FROM ${rows}
     LEFT JOIN ${keyOfRequest[database.kind]} ON k.digest = r.digest
     LEFT JOIN users u ON u.id = k.creator_id
     LEFT JOIN campaigns c ON c.id = r.campaign_id
     LEFT JOIN accounts a ON a.id = c.account_id
     LEFT JOIN calls x ON x.campaign_id = c.id AND x.${by} = r.${by}`,
    'read',
  );
  return async (batch: Naming[]): Promise<Row[]> => {
    const answers = await statement(batch.map((naming, n) => [n, ...requestRow(naming), naming.name]));
    return answers.toSorted((one, other) => Number(one['n']) - Number(other['n']));
  };
}

/** Sorts a batch. Every process uses the same order, so that batches with the same calls wait for each other instead of deadlocking. */
function sortForLocking<Request extends KeyedRequest>(batch: Request[], nameOf: (request: Request) => string): Request[] {
  return batch.toSorted((one, other) => order(nameOf(one), nameOf(other)) || order(one.campaignId, other.campaignId));
}

function order(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function requestRow({ digest, campaignId, at }: KeyedRequest): Value[] {
  return [digest, campaignId, at];
}

/** Returns a call's values in the order of `callColumns`. */
function callRow(call: NewCall): Value[] {
  const variables = call.variables && variablesText(call.variables);
  return [call.contactId, call.requestId, call.phone, call.name, call.timeZone, variables, call.notBefore, call.notAfter];
}

/** Returns the size of a call's variables, because everything else in it is short. */
function bytesOfVariables({ call: { variables } }: Placing): number {
  if (variables === null) return 0;
  return Object.entries(variables).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0);
}

/** Serializes variables, sorted by name, so that the same variables always have the same text. */
function variablesText(variables: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(variables).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Compares calls with the same request ID. If the bodies are the same, it's a repeat; otherwise, it's a conflict. */
function asRepeat(call: NewCall, found: Row): Placement {
  const values = callRow(call);
  // Earlier releases stored missing variables as an empty list.
  const stored: Row = found['variables'] === '[]' ? { ...found, variables: null } : found;
  const isAnother = Object.keys(callColumns).some((column, index) => column !== 'contact_id' && values[index] !== stored[column]);
  if (isAnother) return { kind: 'request-id-conflict' };
  return { kind: 'replayed', contactId: String(found['contact_id']), placedAt: instant(Number(found['placed_at'])) };
}

function asCancelled(row: Row): Cancellation {
  return {
    kind: 'cancelled',
    contactId: String(row['contact_id']),
    requestId: String(row['request_id']),
    cancelledAt: instant(Number(row['cancelled_at'])),
  };
}
