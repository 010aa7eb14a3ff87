import { setTimeout } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Millis } from '../../domain/instant.ts';
import type { AuditEvent, ImportedNumber, ImportedNumbers, NewDoNotCall } from '../../domain/model.ts';
import { recordAudit } from '../audit/audit.ts';
import { required } from '../engine/database.ts';
import type { DoNotCallRow } from '../engine/tables.ts';

/** The number of entries in one statement, because databases limit the number of parameters. */
const insertBatchSize = 100;
type NewNumber = NewDoNotCall['numbers'][number];
type Written = { added: number; written: number };

/**
 * Adds numbers to a list, marks the scope as having a list, increases the version of the partner's lists, and requests that queued calls in
 * the scope be checked.
 *
 * @returns how many entries are new, and how many are either new or now last longer
 */
export async function insertNumbers(trx: Knex.Transaction, entry: NewDoNotCall, now: Millis): Promise<Written> {
  const { owner } = entry;
  const scopeId = owner.accountId ?? owner.partnerId;
  // Sort the numbers, so that two processes that add the same ones wait for each other instead of deadlocking.
  const rows = entry.numbers.toSorted((a, b) => (a.phone < b.phone ? -1 : 1)).map((number) => toRow(entry, scopeId, number));
  const ids = new Set(rows.map(({ id }) => id));
  const written: string[] = [];
  for (let start = 0; start < rows.length; start += insertBatchSize)
    written.push(...(await insertBatch(trx, scopeId, rows.slice(start, start + insertBatchSize), now)));
  const result = { added: written.filter((id) => ids.has(id)).length, written: written.length };
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
async function insertBatch(trx: Knex.Transaction, scopeId: string, rows: readonly DoNotCallRow[], now: Millis): Promise<string[]> {
  const phones = rows.map(({ phone }) => phone);
  // Delete entries that have ended, because they no longer have any effect, and their dates must not be kept.
  await trx('do_not_call').where({ scope_id: scopeId }).whereIn('phone', phones).where('ends_at', '<', now).delete();
  const written: { id: string }[] = await trx('do_not_call')
    .insert([...rows])
    .onConflict(['scope_id', 'phone'])
    .merge({ ends_at: trx.raw('excluded.ends_at') })
    .whereRaw('do_not_call.ends_at IS NOT NULL AND (excluded.ends_at IS NULL OR excluded.ends_at > do_not_call.ends_at)')
    .returning('id');
  return written.map(({ id }) => id);
}

function toRow(entry: NewDoNotCall, scopeId: string, number: NewDoNotCall['numbers'][number]): DoNotCallRow {
  const { owner, id, phone, reason, note, source, call, createdBy, createdAt, endsAt } = { ...entry, ...number };
  return {
    ...{ id, scope_id: scopeId, phone, account_id: owner.accountId, partner_id: owner.partnerId },
    ...{ reason, note, source, campaign_id: call?.campaignId ?? null, contact_id: call?.contactId ?? null },
    ...{ created_by_id: createdBy?.id ?? null, created_by_name: createdBy?.name ?? null, created_at: createdAt, ends_at: endsAt },
  };
}
