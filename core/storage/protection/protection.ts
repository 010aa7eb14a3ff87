import type { Knex } from 'knex';
import { oneDay, plus } from '../../domain/instant.ts';
import type { RuleScope } from '../../domain/model.ts';
import type { CheckRules, ProtectionAccess, ProtectionStore, ScopeRules } from '../../domain/ports.ts';
import { recordAudit } from '../audit/audit.ts';
import { inShortTransactions, type Lanes, requireSeen } from '../engine/database.ts';
import { sumOfShards } from '../engine/shards.ts';
import { emptyLog } from '../engine/sqlite/sqlite-file.ts';
import type { DoNotCallRow } from '../engine/tables.ts';
import { importNumbers, insertNumbers } from './added-numbers.ts';
import { makeHeldDue } from './held-calls.ts';
import { parseList, readCampaignRules } from './known-rules.ts';
import { blockDoNotCall } from './listed-calls.ts';
import { countBeingDialed, findScope, toEntries } from './lookups.ts';

/** The number of entries that one statement deletes. */
const deleteBatchSize = 2_000;

export function protectionStore({ console: database, lists, background }: Lanes): ProtectionStore {
  const { read, write } = database;
  return {
    async addNumbers(added, now, event) {
      const { added: count } = await write.transaction(async (trx) => {
        const inserted = await insertNumbers(trx, added, now);
        // Adding known numbers again changes nothing, so it mustn't add an event that stays.
        if (event && inserted.written > 0) await recordAudit(trx, event);
        return inserted;
      });
      await requireSeen(database);
      const phones = added.numbers.map(({ phone }) => phone);
      return { added: count, known: added.numbers.length - count, beingDialed: await countBeingDialed(database, added.owner, phones) };
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

    async entriesFor(phone) {
      const rows: DoNotCallRow[] = await selectByNumber(read, phone);
      return toEntries(read, rows);
    },

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
      const rows: DoNotCallRow[] = await narrow(read('do_not_call'), access).where({ id });
      const [entry] = await toEntries(read, rows);
      return entry ?? null;
    },

    async listNumbers(access, cursor, limit) {
      const page = narrow(lists.read('do_not_call'), access).orderBy('id', 'desc').limit(limit);
      if (cursor !== null) page.where('id', '<', cursor);
      const rows: DoNotCallRow[] = await page;
      return toEntries(lists.read, rows);
    },

    async searchNumbers(access, prefix, cursor, limit) {
      // Set only one lower bound, because SQLite could start at the other one, and read everything up to the cursor.
      const after = cursor && cursor.phone >= prefix ? cursor : null;
      const page = lists.read('do_not_call').limit(limit);
      if (access.kind === 'account') {
        // The index by account isn't in the order of numbers. The one by scope is, and each number is unique in it.
        page.where({ scope_id: access.accountId }).orderBy('phone');
        if (after) page.where('phone', '>', after.phone);
      } else {
        narrow(page, access).orderBy(['phone', 'id']);
        if (after) page.whereRaw('(phone, id) > (?, ?)', [after.phone, after.id]);
      }
      if (!after) page.where('phone', '>=', prefix);
      // ':' sorts right after the digits.
      const rows: DoNotCallRow[] = await page.where('phone', '<', `${prefix}:`);
      return toEntries(lists.read, rows);
    },

    async findBlocking({ accountId, partnerId }, phone, now) {
      const rows: DoNotCallRow[] = await read('do_not_call')
        .whereIn('scope_id', [accountId, partnerId])
        .where({ phone })
        .where((valid) => valid.whereNull('ends_at').orWhere('ends_at', '>=', now));
      return toEntries(read, rows);
    },

    findScope: (access, kind, id) => findScope(database, access, kind, id),

    findRules: (scopeId) => findRules(read, scopeId),

    async campaignRules(campaignId) {
      return (await readCampaignRules(database, [campaignId])).get(campaignId) ?? null;
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

    async setRules(scope, change, event, check) {
      await write.transaction(async (trx) => {
        await writeRules(trx, scope, change, event.id, check);
        await recordAudit(trx, event);
      });
      await requireSeen(database);
    },

    blockDoNotCall: (now, signal) => blockDoNotCall(background, now, signal),
    makeHeldDue: (now, signal) => makeHeldDue(background, now, signal),

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

    async countHeld(now) {
      return sumOfShards(background, async (shard) => {
        const [row] = await shard.query<{ held: number | string }>(
          'SELECT count(*) AS held FROM calls WHERE held_until IS NOT NULL AND due_at IS NOT NULL AND held_until > ?',
          [now],
        );
        return Number(row?.held ?? 0);
      });
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

async function findRules(on: Knex, scopeId: string): Promise<ScopeRules> {
  const row = await on('protection_rules').where({ scope_id: scopeId }).first();
  return {
    hours: row?.hours == null ? null : parseList(row.hours),
    countries: row?.countries == null ? null : parseList(row.countries),
    kinds: row?.kinds == null ? null : parseList(row.kinds),
  };
}

/**
 * Replaces the given rules of a scope, and changes the version of the partner's rules, so that every process checks calls against the new
 * ones. Marks the scope if its hours change. @param mark differs for each change
 */
async function writeRules(
  trx: Knex.Transaction,
  { id, owner }: RuleScope,
  change: Partial<ScopeRules>,
  mark: string,
  check: CheckRules | null,
): Promise<void> {
  const rules = Object.entries(change).map(([name, value]) => [name, value === null ? null : JSON.stringify(value)]);
  const columns = Object.fromEntries(change.hours === undefined ? rules : [...rules, ['hours_changed', mark]]);
  // Let concurrent changes to a partner's rules wait for each other here, so that none of them is lost.
  await trx('partners')
    .where({ id: owner.partnerId })
    .update({ rules_version: trx.raw('coalesce(rules_version, 0) + 1') });
  check?.(await findRules(trx, id));
  await trx('protection_rules')
    .insert({ scope_id: id, partner_id: owner.partnerId, hours: null, countries: null, kinds: null, hours_changed: null, ...columns })
    .onConflict('scope_id')
    .merge(columns);
}
