import type { Millis } from '../../domain/instant.ts';
import type { Database } from '../engine/database.ts';
import type { CallKeyPair } from './queue-changes.ts';

/** The columns of the queue's index after the account, in order. */
const position = ['due_at', 'placed_at', 'api_key_id', 'contact_id'] as const;
type Position = readonly [dueAt: number, placedAt: number, apiKeyId: string, contactId: string];
type PositionRow = { due_at: number; placed_at: number; api_key_id: string; contact_id: string };

const start: Position = [0, 0, '', ''];
/** The number of calls in an account's queue that one claim searches. This takes 3 to 5 ms, on a different connection from the claim's. */
const stretchLength = 10_000;
/** The number of keys whose calls one claim adds for an account. */
const maxKeys = 8;

/** A part of an account's queue in which a key has calls. */
type Stretch = { from: Position; to: Position };
/** The known state of an account with a long queue. @property scanned how far it has been searched for other keys */
type Account = { front: ReadonlySet<string>; scanned: Position; keys: Map<string, Stretch>; isTurnOfOthers: boolean };

export type KeyTurns = ReturnType<typeof keyTurns>;

/**
 * Lets the keys of an account take turns, even if one of them has a million calls in front of the others. The queue has no index by key
 * (see core/docs/decisions/one-index-of-the-queue.md), so each claim searches the next stretch of the queue for calls of other keys, and
 * remembers where they are. What it remembers is only a hint: the claim itself checks each call.
 */
export function keyTurns(database: Database) {
  const accounts = new Map<string, Account>();
  const queue = database.kind === 'sqlite' ? 'calls INDEXED BY calls_due' : 'calls';
  const part = `FROM ${queue} WHERE account_id = ? AND due_at IS NOT NULL AND due_at <= ? AND (${position}) > (?, ?, ?, ?)`;

  /** Searches the next stretch for keys. After the end of the queue, starts again at its beginning. */
  async function search(id: string, account: Account, now: Millis): Promise<void> {
    const from = account.scanned;
    const bindings = [id, now, ...from];
    const inOrder = `ORDER BY ${position} LIMIT ${stretchLength}`;
    const stretches = await database.query<Omit<PositionRow, 'contact_id'>>(
      `SELECT api_key_id, min(due_at) AS due_at, min(placed_at) AS placed_at
       FROM (SELECT ${position} ${part} ${inOrder}) AS stretch GROUP BY api_key_id`,
      bindings,
    );
    const [last] = await database.query<PositionRow>(
      `SELECT ${position} ${part} ORDER BY ${position} LIMIT 1 OFFSET ${stretchLength - 1}`,
      bindings,
    );
    account.scanned = last ? [last.due_at, last.placed_at, last.api_key_id, last.contact_id] : start;
    const to: Position = last ? account.scanned : [now + 1, 0, '', ''];
    for (const { api_key_id, due_at, placed_at } of stretches) {
      if (!account.front.has(api_key_id) && !account.keys.has(api_key_id))
        account.keys.set(api_key_id, { from: [due_at, placed_at, '', ''], to });
    }
  }

  /** Returns the next calls of a key, and forgets the key if there are no more in its stretch. */
  async function next(id: string, { keys }: Account, key: string, now: Millis, limit: number): Promise<CallKeyPair[]> {
    const stretch = keys.get(key);
    if (!stretch) return [];
    const rows = await database.query<PositionRow & { campaign_id: string }>(
      `SELECT campaign_id, ${position} ${part} AND (${position}) <= (?, ?, ?, ?) AND api_key_id = ? ORDER BY ${position} LIMIT ${limit}`,
      [id, now, ...stretch.from, ...stretch.to, key],
    );
    // Move the key behind all others, so that each key gets its turn.
    keys.delete(key);
    const [first] = rows;
    // There may be more calls, and this claim might not take all of these, so the stretch now begins right before the first one. Claimed
    // calls leave the queue.
    if (first && rows.length === limit) keys.set(key, { ...stretch, from: [first.due_at, first.placed_at, first.api_key_id, ''] });
    return rows.map(({ campaign_id, contact_id }) => [campaign_id, contact_id]);
  }

  return {
    /** Returns calls of keys that aren't in front of these accounts' queues. @param limit per key */
    async findOthers(ids: readonly string[], now: Millis, limit: number): Promise<Map<string, CallKeyPair[]>> {
      const others = new Map<string, CallKeyPair[]>();
      for (const id of ids) {
        const account = accounts.get(id);
        if (!account) continue;
        for (const key of account.front) account.keys.delete(key);
        if (account.keys.size < maxKeys) await search(id, account, now);
        const calls: CallKeyPair[] = [];
        for (const key of [...account.keys.keys()].slice(0, maxKeys)) calls.push(...(await next(id, account, key, now, limit)));
        others.set(id, calls);
        // Move the first key to the end, so that the next claim begins with another one.
        const [first] = account.keys;
        if (first) {
          account.keys.delete(first[0]);
          account.keys.set(...first);
        }
      }
      return others;
    },

    /**
     * Orders the calls of an account so that its keys take turns.
     *
     * @param front the oldest calls @param others calls of other keys @param isLong whether the queue may have more calls than those in
     * `front`
     */
    takeTurns<Call extends { api_key_id: string }>(id: string, front: readonly Call[], others: readonly Call[], isLong: boolean): Call[] {
      const keysInFront = new Set(front.map(({ api_key_id }) => api_key_id));
      const known = accounts.get(id);
      if (!isLong) accounts.delete(id);
      else if (known) known.front = keysInFront;
      else accounts.set(id, { front: keysInFront, scanned: start, keys: new Map(), isTurnOfOthers: true });
      const behind = others.filter(({ api_key_id }) => !keysInFront.has(api_key_id));
      // The keys in front and the keys behind take turns at going first, because a claim may have room for only one call.
      const isTurnOfOthers = known?.isTurnOfOthers ?? false;
      if (known) known.isTurnOfOthers = !isTurnOfOthers;
      const queues = [
        ...Map.groupBy(isTurnOfOthers ? [...behind, ...front] : [...front, ...behind], ({ api_key_id }) => api_key_id).values(),
      ];
      const longest = Math.max(0, ...queues.map(({ length }) => length));
      return Array.from({ length: longest }, (_, turn) => queues.flatMap((calls) => calls.slice(turn, turn + 1))).flat();
    },
  };
}
