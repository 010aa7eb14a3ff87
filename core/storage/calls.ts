import type { CallReference, CallStore, Cancellation, KeyedRequest, NewCall, Placement, Refusal } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { isAllowed, joinAuthority, keyReaches, keyStands } from './authority.ts';
import { type BatchObserver, batched } from './batch.ts';
import type { Database, Row } from './database.ts';
import { isDataFault } from './faults.ts';
import type { LastUsed } from './last-used.ts';

/** How many requests shared a statement, by what they asked for. */
export type ObserveBatch = (operation: 'place' | 'cancel' | 'explain', size: number) => void;

const requestColumns = { n: 'bigint', digest: 'text', campaign_id: 'text', at: 'bigint' } as const;
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

/** A call that is cancelled is over, and the dialer has nothing more to do with it. */
export function cancelled(at: string): string {
  return `state = 'cancelled', cancelled_at = ${at}, ended_at = ${at}, due_at = NULL`;
}

/** How often a request is asked again that was left alone, and then nothing was found to be in its way. */
const attempts = 5;

type Explanation = { allowed: true; call: Row | null } | { allowed: false; refusal: Refusal };

/**
 * Each operation is one statement for a whole batch, which changes only what every rule allows. What it left alone is then explained
 * by a look-up; the explanation decides nothing but which refusal, or which earlier answer, is given.
 */
export function callStore(database: Database, lastUsed: LastUsed, observe: ObserveBatch, onPlaced: () => void): CallStore {
  const batching = { size: database.batchSize, lanes: database.lanes, isFaultOfOne: isDataFault };
  const observer =
    (operation: Parameters<ObserveBatch>[0]): BatchObserver =>
    (size) =>
      observe(operation, size);

  const explain = {
    byRequest: batched({ ...batching, run: explainer(database, 'request_id'), observe: observer('explain') }),
    byContact: batched({ ...batching, run: explainer(database, 'contact_id'), observe: observer('explain') }),
  };
  const insert = batched({ ...batching, run: inserter(database), observe: observer('place') });
  const cancel = {
    byRequest: batched({ ...batching, run: canceller(database, 'request_id'), observe: observer('cancel') }),
    byContact: batched({ ...batching, run: canceller(database, 'contact_id'), observe: observer('cancel') }),
  };

  async function explained(request: KeyedRequest, reference: CallReference): Promise<Explanation> {
    const row =
      'requestId' in reference
        ? await explain.byRequest(requestRow(request, { request_id: reference.requestId }))
        : await explain.byContact(requestRow(request, { contact_id: reference.contactId }));
    if (!row['stands']) return { allowed: false, refusal: 'unauthorized' };
    lastUsed.note(request.digest, request.at);
    if (!row['reaches']) return { allowed: false, refusal: 'campaign-refused' };
    return { allowed: true, call: row['contact_id'] == null ? null : row };
  }

  return {
    async place(request, call): Promise<Placement> {
      const row = requestRow(request, callRow(call));
      for (let attempt = 0; attempt < attempts; attempt++) {
        if (await insert(row)) {
          lastUsed.note(request.digest, request.at);
          onPlaced();
          return { kind: 'placed' };
        }
        const explanation = await explained(request, { requestId: call.requestId });
        if (!explanation.allowed) return { kind: explanation.refusal };
        if (explanation.call) return asRepeat(call, explanation.call);
        // Nothing stands in the way any more: the key, its creator or the campaign changed in between. Ask again.
      }
      throw unsettled();
    },

    async cancel(request, reference): Promise<Cancellation> {
      const row = requestRow(request, 'requestId' in reference ? { request_id: reference.requestId } : { contact_id: reference.contactId });
      for (let attempt = 0; attempt < attempts; attempt++) {
        const won = await ('requestId' in reference ? cancel.byRequest : cancel.byContact)(row);
        if (won) {
          lastUsed.note(request.digest, request.at);
          return asCancelled(won);
        }
        const explanation = await explained(request, reference);
        if (!explanation.allowed) return { kind: explanation.refusal };
        if (!explanation.call) return { kind: 'call-not-found' };
        if (explanation.call['state'] === 'cancelled') return asCancelled(explanation.call);
        if (explanation.call['state'] !== 'queued') return { kind: 'already-dialed' };
      }
      throw unsettled();
    },

    async authorize(request) {
      const explanation = await explained(request, { requestId: '' });
      return explanation.allowed ? 'authorized' : explanation.refusal;
    },
  };
}

function unsettled(): Problem {
  return new Problem('unavailable', 'What this request needs is changing too fast. Try again.', { retryAfter: 1 });
}

function inserter(database: Database) {
  const columns = Object.keys(callColumns);
  const statement = database.prepare(
    `INSERT INTO calls (campaign_id, account_id, api_key_id, state, placed_at, due_at, ${columns.join(', ')})
     SELECT c.id, c.account_id, k.id, 'queued', r.at, CASE WHEN r.not_before > r.at THEN r.not_before ELSE r.at END,
       ${columns.map((column) => `r.${column}`).join(', ')}
     FROM ${database.asRows({ ...requestColumns, ...callColumns })} ${joinAuthority}
     WHERE ${isAllowed}
     ON CONFLICT (campaign_id, request_id) DO NOTHING
     RETURNING contact_id`,
    'write',
  );
  return async (rows: Row[]): Promise<boolean[]> => {
    // In one order everywhere, so that batches with the same request ids wait for each other instead of deadlocking.
    const inserted = new Set((await statement(rows.toSorted(byTarget('request_id')))).map((row) => row['contact_id']));
    return rows.map((row) => inserted.has(row['contact_id'] ?? null));
  };
}

function canceller(database: Database, by: 'contact_id' | 'request_id') {
  const statement = database.prepare(
    `UPDATE calls SET ${cancelled('r.at')}
     FROM ${database.asRows({ ...requestColumns, [by]: 'text' })} ${joinAuthority}
     WHERE ${isAllowed} AND calls.campaign_id = c.id AND calls.${by} = r.${by} AND calls.state = 'queued'
     RETURNING calls.campaign_id, calls.contact_id, calls.request_id, calls.cancelled_at`,
    'write',
  );
  const target = (row: Row) => `${row['campaign_id']} ${row[by]}`;
  return async (rows: Row[]): Promise<(Row | null)[]> => {
    const changed = new Map((await statement(rows.toSorted(byTarget(by)))).map((row) => [target(row), row]));
    // A row says which call was cancelled, not for which request: where several asked for the same call, each is explained on its own.
    const asked = Map.groupBy(rows, target);
    return rows.map((row) => (asked.get(target(row))?.length === 1 ? (changed.get(target(row)) ?? null) : null));
  };
}

/** Says of each request whether its key stands, whether it reaches the campaign, and which call it names there. */
function explainer(database: Database, by: 'contact_id' | 'request_id') {
  const statement = database.prepare(
    `SELECT r.n, k.id IS NOT NULL AND ${keyStands} AS stands, c.id IS NOT NULL AND ${keyReaches} AS reaches,
       x.contact_id, x.request_id, x.state, x.placed_at, x.cancelled_at,
       x.phone, x.name, x.time_zone, x.variables, x.not_before, x.not_after
     FROM ${database.asRows({ ...requestColumns, [by]: 'text' })}
     LEFT JOIN api_keys k ON k.digest = r.digest
     LEFT JOIN users u ON u.id = k.creator_id
     LEFT JOIN campaigns c ON c.id = r.campaign_id
     LEFT JOIN accounts a ON a.id = c.account_id
     LEFT JOIN calls x ON x.campaign_id = c.id AND x.${by} = r.${by}`,
    'read',
  );
  return async (rows: Row[]): Promise<Row[]> => {
    const answers = await statement(rows.map((row, n) => ({ ...row, n })));
    return answers.toSorted((one, other) => Number(one['n']) - Number(other['n']));
  };
}

function byTarget(column: 'contact_id' | 'request_id') {
  const target = (row: Row) => `${row['campaign_id']} ${row[column]}`;
  return (one: Row, other: Row) => (target(one) < target(other) ? -1 : 1);
}

function requestRow({ digest, campaignId, at }: KeyedRequest, rest: Row): Row {
  return { n: 0, digest, campaign_id: campaignId, at: at.toMillis(), ...rest };
}

function callRow(call: NewCall): Row {
  return {
    contact_id: call.contactId,
    request_id: call.requestId,
    phone: call.phone,
    name: call.name,
    time_zone: call.timeZone,
    variables: call.variables && variablesText(call.variables),
    not_before: call.notBefore,
    not_after: call.notAfter,
  };
}

/** In the order of their names, so that the same variables are the same text. */
function variablesText(variables: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(variables).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** The same body under the same request id is a repeat; another body is a conflict. */
function asRepeat(call: NewCall, found: Row): Placement {
  const wanted = callRow(call);
  const compared = ['phone', 'name', 'time_zone', 'variables', 'not_before', 'not_after'];
  if (compared.some((column) => wanted[column] !== found[column])) return { kind: 'request-id-conflict' };
  return { kind: 'replayed', contactId: String(found['contact_id']), placedAt: Number(found['placed_at']) };
}

function asCancelled(row: Row): Cancellation {
  return {
    kind: 'cancelled',
    contactId: String(row['contact_id']),
    requestId: String(row['request_id']),
    cancelledAt: Number(row['cancelled_at']),
  };
}
