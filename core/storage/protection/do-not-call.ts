import { setTimeout } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Named } from '#contract/console/common.ts';
import { type Millis, oneDay, plus } from '../../domain/instant.ts';
import type { AuditEvent, OwningScope } from '../../domain/model.ts';
import type {
  DoNotCallEntry,
  DoNotCallStore,
  ImportedNumber,
  ImportedNumbers,
  NewDoNotCall,
  ProtectionAccess,
} from '../../domain/ports.ts';
import { doNotCallDetail } from '../../domain/protection/judge.ts';
import { recordAudit } from '../audit/audit.ts';
import { countCalls, sumOfCalls } from '../engine/call-lanes.ts';
import { both, oneOf } from '../engine/conditions.ts';
import { inChunks, inShortTransactions, type Lane, type Lanes, required, requireSeen } from '../engine/database.ts';
import { emptyLog } from '../engine/sqlite/sqlite.ts';
import type { DoNotCallRow, DoNotCallSweepRow } from '../engine/tables.ts';
import {
  callKey,
  endUndialed,
  isAt,
  isListed,
  isOwnedBy,
  isUndialed,
  selectAmong,
  toKeyPair,
  unlocked,
  walkQueue,
} from '../queue/queue.ts';

const deleteBatchSize = 2_000;

export function doNotCallStore({ console: database, lists, background }: Lanes): DoNotCallStore {
  const { read, write } = database;
  return {
    async addNumbers(added, now, event) {
      const { isNew } = await write.transaction(async (trx) => {
        const inserted = await insertNumbers(trx, added, now);
        // Adding known numbers again changes nothing, so it mustn't add an event that stays.
        if (event && inserted.written > 0) await recordAudit(trx, event);
        return inserted;
      });
      await requireSeen(database);
      const phones = added.numbers.map(({ phone }) => phone);
      const known = added.numbers.filter((number) => !isNew(number)).map(({ phone }) => phone);
      return { known, beingDialed: await countBeingDialed(database, added.owner, phones) };
    },

    async importNumbers(entry, numbers, now, event) {
      const added = await importNumbers(background.write, entry, numbers, now, event);
      await requireSeen(background);
      return added;
    },

    async lift(id, event) {
      return write.transaction(async (trx) => {
        const deleted = await trx('do_not_call').where({ id }).delete();
        if (deleted > 0) await recordAudit(trx, event);
        return deleted > 0;
      });
    },

    entriesFor: (phone) => toEntries(read, selectByNumber(read, phone)),

    async forget(phone, event) {
      const deleted = await write.transaction(async (trx) => {
        // Delete all recorded additions, not only those with this number, because a process that finds the version it knows expects to find
        // all later ones.
        await trx('do_not_call_additions').delete();
        const entries = await selectByNumber(trx, phone).delete();
        if (entries > 0) await recordAudit(trx, event);
        return entries;
      });
      await emptyLog(database);
      return deleted;
    },

    async findEntry(access, id) {
      const [entry] = await toEntries(read, narrow(read('do_not_call'), access).where({ id }));
      return entry ?? null;
    },

    async listNumbers(access, cursor, limit) {
      const page = narrow(lists.read('do_not_call'), access).orderBy('id', 'desc').limit(limit);
      if (cursor !== null) page.where('id', '<', cursor);
      return toEntries(lists.read, page);
    },

    async searchNumbers(access, prefix, after, limit) {
      const page = startingWith(lists.read('do_not_call'), access, prefix).limit(limit);
      if (access.kind === 'account') {
        page.orderBy('phone');
        if (after) page.where('phone', '>', after.phone);
      } else {
        page.orderBy(['phone', 'id']);
        if (after) page.whereRaw('(phone, id) > (?, ?)', [after.phone, after.id]);
      }
      // Set only one lower bound, because SQLite could start at the other one, and read everything up to the position.
      if (!after) page.where('phone', '>=', prefix);
      return toEntries(lists.read, page);
    },

    async countNumbers(access, prefix, max) {
      const entries = lists.read('do_not_call').select(lists.read.raw('1')).limit(max);
      if (prefix === '') narrow(entries, access);
      else startingWith(entries, access, prefix).where('phone', '>=', prefix);
      const counted = await lists.read.from(entries.as('matching')).count({ numbers: '*' });
      return Number(counted[0]?.numbers);
    },

    async findBlocking({ accountId, partnerId }, phone, now) {
      const entries = read('do_not_call').whereIn('scope_id', [accountId, partnerId]).where({ phone });
      return toEntries(
        read,
        entries.where((valid) => valid.whereNull('ends_at').orWhere('ends_at', '>=', now)),
      );
    },

    async optOutScope(accountId) {
      const account = await read('accounts').where({ id: accountId }).first('opt_outs_for_partner');
      return account?.opt_outs_for_partner ? 'partner' : 'account';
    },

    async setOptOutScope(accountId, scope, event) {
      await write.transaction(async (trx) => {
        await trx('accounts')
          .where({ id: accountId })
          .update({ opt_outs_for_partner: scope === 'partner' ? 1 : null });
        await recordAudit(trx, event);
      });
    },

    blockDoNotCall: (now, signal) => blockDoNotCall(background, now, signal),

    async deleteEnded(now, signal) {
      await background.write('do_not_call_additions').where('version', '<', plus(now, -oneDay)).delete();
      return inShortTransactions(
        (limit) => {
          const ended = background.write('do_not_call').where('ends_at', '<', now).whereNotNull('ends_at').limit(limit).select('id');
          return background.write('do_not_call').whereIn('id', ended).delete();
        },
        deleteBatchSize,
        signal,
      );
    },
  };
}

/** Selects a number's entries on all lists, partner by partner, because no index begins with the number. */
function selectByNumber(on: Knex, phone: string): Knex.QueryBuilder {
  return on('do_not_call').whereIn('partner_id', on('partners').select('id')).where({ phone });
}

function narrow(entries: Knex.QueryBuilder, access: ProtectionAccess): Knex.QueryBuilder {
  if (access.kind === 'all') return entries;
  return access.kind === 'account' ? entries.where('account_id', access.accountId) : entries.where('partner_id', access.partnerId);
}

/** The lower bound isn't set yet. */
function startingWith(entries: Knex.QueryBuilder, access: ProtectionAccess, prefix: string): Knex.QueryBuilder {
  // ':' sorts right after the digits.
  entries.where('phone', '<', `${prefix}:`);
  // The index by account isn't in the order of numbers. The one by scope is, and each number is unique in it.
  return access.kind === 'account' ? entries.where({ scope_id: access.accountId }) : narrow(entries, access);
}

async function toEntries(read: Knex, found: Knex.QueryBuilder): Promise<DoNotCallEntry[]> {
  const rows: DoNotCallRow[] = await found;
  const ids = [...new Set(rows.map((row) => row.scope_id))];
  const names: Named[] = [];
  for (const chunk of inChunks(ids)) {
    names.push(...(await read('accounts').whereIn('id', chunk).select('id', 'name')));
    names.push(...(await read('partners').whereIn('id', chunk).select('id', 'name')));
  }
  const nameById = new Map(names.map(({ id, name }) => [id, name]));
  return rows.map((row) => toEntry(row, nameById.get(row.scope_id) ?? ''));
}

function toEntry(row: DoNotCallRow, scopeName: string): DoNotCallEntry {
  const { id, phone, reason, note, source } = row;
  return {
    ...{ id, phone, reason, note, source },
    scope: { kind: row.account_id === null ? 'partner' : 'account', id: row.scope_id, name: scopeName },
    call: row.campaign_id === null || row.contact_id === null ? null : { campaignId: row.campaign_id, contactId: row.contact_id },
    createdBy: row.created_by_id === null ? null : { id: row.created_by_id, name: row.created_by_name ?? '' },
    createdAt: row.created_at,
    endsAt: row.ends_at,
  };
}

/** Counts the calls to these numbers that a provider has or may have. */
async function countBeingDialed(database: Lane, owner: OwningScope, phones: readonly string[]): Promise<number> {
  let calls = 0;
  for (const chunk of inChunks(phones)) {
    const { sql, values } = both(oneOf('phone', chunk), isOwnedBy(owner));
    calls += await countCalls(database, `calls WHERE state = 'dialing' AND ${sql} AND ${isAt('open', 'doubt', 'taken')}`, values);
  }
  return calls;
}

const accountBatchSize = 1_000;

export async function* accountsIn({ read }: Lane, { accountId, partnerId }: OwningScope): AsyncGenerator<string> {
  if (accountId !== null) return yield accountId;
  for (let after = ''; ; ) {
    const ids: string[] = await read('accounts')
      .where({ partner_id: partnerId })
      .where('id', '>', after)
      .orderBy('id')
      .limit(accountBatchSize)
      .pluck('id');
    yield* ids;
    const last = ids.at(-1);
    if (last === undefined) return;
    after = last;
  }
}

type NewNumber = NewDoNotCall['numbers'][number];
/** @property added how many entries are new @property written how many are either new or now last longer */
type Written = { added: number; written: number; isNew: (number: NewNumber) => boolean };

/** Adds numbers to a list, raises the version of the partner's lists, and requests that queued calls in the scope be checked. */
export async function insertNumbers(trx: Knex.Transaction, entry: NewDoNotCall, now: Millis): Promise<Written> {
  const { owner } = entry;
  const scopeId = owner.accountId ?? owner.partnerId;
  // Sort the numbers, so that two processes that add the same ones wait for each other instead of deadlocking.
  const rows = entry.numbers.toSorted((a, b) => (a.phone < b.phone ? -1 : 1)).map((number) => toRow(entry, scopeId, number));
  const written = new Set<string>();
  for (const chunk of inChunks(rows)) for (const id of await insertBatch(trx, scopeId, chunk, now)) written.add(id);
  const isNew = ({ id }: Pick<NewNumber, 'id'>) => written.has(id);
  const result = { added: rows.filter(isNew).length, written: written.size, isNew };
  const [first] = rows;
  if (!first) return result;
  await trx(owner.accountId === null ? 'partners' : 'accounts')
    .where({ id: scopeId })
    .whereNull('has_do_not_call')
    .update({ has_do_not_call: 1 });
  await raiseVersion(trx, owner.partnerId, rows, now);
  const token = first.id;
  await trx('do_not_call_sweeps')
    .insert({ scope_id: scopeId, account_id: owner.accountId, partner_id: owner.partnerId, token })
    .onConflict('scope_id')
    .merge({ token });
  return result;
}

/** In ms: about how long a batch of imported numbers may take, because on SQLite, placing a call waits for it. */
const stepTime = 10;
const minBatchSize = 100;
const maxBatchSize = 1_000;
/**
 * In ms: the minimum pause after a batch. A pause also lasts at least as long as the batch took, because SQLite's lock isn't fair: the longer
 * a core has waited for the lock, the less often it tries to get it.
 */
const minPause = 20;

/** Adds any number of numbers to a list, in short transactions. @param event is recorded with the first batch @returns how many were new */
export async function importNumbers(
  write: Knex,
  entry: ImportedNumbers,
  numbers: AsyncIterable<NewNumber>,
  now: Millis,
  event: AuditEvent,
): Promise<number> {
  // How many numbers the next batch has. It depends on how long the last batch took, because a busy machine needs ten times as long.
  let [size, added, isRecorded] = [minBatchSize, 0, false];
  const batch = new Map<string, NewNumber>();
  const add = async () => {
    const begun = performance.now();
    added += await write.transaction(async (trx) => {
      if (!isRecorded) await recordAudit(trx, event);
      return (await insertNumbers(trx, { ...entry, numbers: [...batch.values()] }, now)).added;
    });
    isRecorded = true;
    const duration = performance.now() - begun;
    size = Math.round(Math.max(Math.min((batch.size * stepTime) / duration, 2 * size, maxBatchSize), minBatchSize));
    batch.clear();
    await setTimeout(Math.max(duration, minPause));
  };
  for await (const number of numbers) {
    // Keep the entry that lasts longest, because an exported list of a partner can contain a number several times, once for each account.
    const isLongest = getEnd(number) > getEnd(batch.get(number.phone) ?? { endsAt: now });
    if (isLongest) batch.set(number.phone, number);
    if (batch.size >= size) await add();
  }
  if (batch.size > 0) await add();
  return added;
}

function getEnd({ endsAt }: Pick<ImportedNumber, 'endsAt'>): number {
  return endsAt ?? Number.POSITIVE_INFINITY;
}

/** Transactions that add to one partner's lists wait for each other here, so they commit in the order of their versions. */
async function raiseVersion(trx: Knex.Transaction, partnerId: string, rows: readonly DoNotCallRow[], now: Millis): Promise<void> {
  const version = trx.raw('CASE WHEN do_not_call_version >= ? THEN do_not_call_version + 1 ELSE ? END', [now, now]);
  const [raised] = await trx('partners').where({ id: partnerId }).update({ do_not_call_version: version }).returning('do_not_call_version');
  const phones = rows.map(({ phone }) => phone).join(' ');
  await trx('do_not_call_additions').insert({
    partner_id: partnerId,
    version: required(raised?.do_not_call_version ?? null, 'do_not_call_version'),
    phones,
  });
}

/** @returns the IDs of the entries that are new or now last longer */
async function insertBatch(trx: Knex.Transaction, scopeId: string, rows: DoNotCallRow[], now: Millis): Promise<string[]> {
  const phones = rows.map(({ phone }) => phone);
  // Delete entries that have ended, because they no longer have any effect, and their dates must not be kept.
  await trx('do_not_call').where({ scope_id: scopeId }).whereIn('phone', phones).where('ends_at', '<', now).delete();
  const written: { id: string }[] = await trx('do_not_call')
    .insert(rows)
    .onConflict(['scope_id', 'phone'])
    .merge({ ends_at: trx.raw('excluded.ends_at') })
    .whereRaw('do_not_call.ends_at IS NOT NULL AND (excluded.ends_at IS NULL OR excluded.ends_at > do_not_call.ends_at)')
    .returning('id');
  return written.map(({ id }) => id);
}

function toRow(entry: NewDoNotCall, scopeId: string, number: NewNumber): DoNotCallRow {
  const { owner, id, phone, reason, note, source, call, createdBy, createdAt, endsAt } = { ...entry, ...number };
  return {
    ...{ id, scope_id: scopeId, phone, account_id: owner.accountId, partner_id: owner.partnerId },
    ...{ reason, note, source, campaign_id: call?.campaignId ?? null, contact_id: call?.contactId ?? null },
    ...{ created_by_id: createdBy?.id ?? null, created_by_name: createdBy?.name ?? null, created_at: createdAt, ends_at: endsAt },
  };
}

const lookupBatchSize = 1_000;

/** A claim would block these calls anyway, but that may be hours from now, and the list of calls would show them as queued until then. */
async function blockDoNotCall(database: Lane, now: Millis, signal?: AbortSignal): Promise<number> {
  let blocked = 0;
  const sweeps: DoNotCallSweepRow[] = await database.read('do_not_call_sweeps').orderBy('scope_id');
  if (sweeps.length === 0) return 0;
  // Wait for batches that may be placing calls without seeing the new entries.
  await requireSeen(database);
  for (const { scope_id, account_id, partner_id, token } of sweeps) {
    for await (const account of accountsIn(database, { accountId: account_id, partnerId: partner_id }))
      blocked += await sumOfCalls(database, (lane) => blockInAccount(lane, account, now, signal));
    // If numbers were added in the meantime, the token has changed, and the next run starts again.
    await database.write('do_not_call_sweeps').where({ scope_id, token }).delete();
  }
  return blocked;
}

/** Blocks an account's waiting calls, except those that a dialer is claiming right now: the claim itself blocks them. */
async function blockInAccount(database: Lane, accountId: string, now: Millis, signal: AbortSignal | undefined): Promise<number> {
  const isBlockable = `${isUndialed} AND ${isListed(String(now))}`;
  let blocked = 0;
  for await (const rows of walkQueue(database, { flag: isBlockable, accountId, size: lookupBatchSize, signal })) {
    for (const chunk of inChunks(rows.filter(({ flag }) => flag))) {
      blocked += await database.write.transaction(async (trx) => {
        const free = await unlocked(trx, selectAmong(trx, chunk.map(toKeyPair))).select(callKey);
        return endUndialed(database, trx, free.map(toKeyPair), now, { state: 'blocked', detail: doNotCallDetail, ifListed: true });
      });
    }
  }
  return blocked;
}
