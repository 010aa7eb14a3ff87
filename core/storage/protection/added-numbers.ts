import type { Knex } from 'knex';
import type { Millis } from '../../domain/instant.ts';
import type { NewDoNotCall } from '../../domain/model.ts';
import { required } from '../engine/columns.ts';
import type { DoNotCallRow } from '../engine/tables.ts';

/** The number of entries in one statement, because databases limit the number of parameters. */
const insertBatchSize = 100;
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
    .whereNull('lists_numbers')
    .update({ lists_numbers: 1 });
  await raiseVersion(trx, owner.partnerId, rows, now);
  const token = first.id;
  await trx('do_not_call_sweeps')
    .insert({ scope_id: scopeId, account_id: owner.accountId, partner_id: owner.partnerId, token })
    .onConflict('scope_id')
    .merge({ token });
  return result;
}

/** Transactions that add to one partner's lists wait for each other here, so they commit in the order of their versions. */
async function raiseVersion(trx: Knex.Transaction, partnerId: string, rows: readonly DoNotCallRow[], now: Millis): Promise<void> {
  const version = trx.raw('CASE WHEN lists_version >= ? THEN lists_version + 1 ELSE ? END', [now, now]);
  const [raised] = await trx('partners').where({ id: partnerId }).update({ lists_version: version }).returning('lists_version');
  const phones = rows.map(({ phone }) => phone).join(' ');
  await trx('do_not_call_additions').insert({
    partner_id: partnerId,
    version: required(raised?.lists_version ?? null, 'lists_version'),
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
