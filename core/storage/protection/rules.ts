import type { Knex } from 'knex';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import { eachDespiteErrors } from '../../domain/each-despite-errors.ts';
import { instant, type Millis } from '../../domain/instant.ts';
import type { CheckRules, ProtectionAccess, RuleScope, RuleStore, ScopeRules } from '../../domain/ports.ts';
import { recordAudit } from '../audit/audit.ts';
import { sumOfCalls } from '../engine/call-lanes.ts';
import { type Lane, type Lanes, requireSeen } from '../engine/database.ts';
import { markHeldDue } from '../queue/queue.ts';
import { accountsIn } from './do-not-call.ts';
import { parseColumn, readCampaignRules } from './known.ts';

export function ruleStore({ console: database, background }: Lanes): RuleStore {
  const { read, write } = database;
  return {
    findScope: (access, kind, id) => findScope(database, access, kind, id),

    findRules: (scopeId) => findRules(read, scopeId),

    async campaignRules(campaignId) {
      return (await readCampaignRules(database, [campaignId])).get(campaignId) ?? null;
    },

    async setRules(scope, change, event, check) {
      await write.transaction(async (trx) => {
        const before = await writeRules(trx, scope, change, event.id, check);
        if (change.pace !== undefined) await moveNext(trx, scope.id, before.pace?.perSecond, change.pace?.perSecond);
        await recordAudit(trx, event);
      });
      await requireSeen(database);
    },

    makeHeldDue: (now, signal) => makeHeldDue(background, now, signal),
  };
}

/**
 * Lets the next call leave as long after the last one as the new pace says, because the old one may have been much slower. Without a pace,
 * nothing waits for it. @param from and @param to calls a second
 */
async function moveNext(trx: Knex.Transaction, scopeId: string, from?: number | null, to?: number | null): Promise<void> {
  const next_at = from && to ? trx.raw('next_at + ?', [Math.round(1_000 / to - 1_000 / from)]) : instant(0);
  await trx('dialing_paces').where({ scope_id: scopeId }).update({ next_at });
}

async function findRules(on: Knex, scopeId: string): Promise<ScopeRules> {
  const row = await on('protection_rules').where({ scope_id: scopeId }).first();
  return {
    hours: parseColumn(row?.hours),
    countries: parseColumn(row?.countries),
    kinds: parseColumn(row?.kinds),
    pace: parseColumn(row?.pace),
    contactLimits: parseColumn(row?.contact_limits),
  };
}

/**
 * Replaces the given rules of a scope, and changes the version of the partner's rules, so that every process checks calls against the new
 * ones. Marks the scope if they may hold calls. @param mark differs for each change @returns the rules before
 */
async function writeRules(
  trx: Knex.Transaction,
  { id, owner }: RuleScope,
  change: Partial<ScopeRules>,
  mark: string,
  check: CheckRules,
): Promise<ScopeRules> {
  const { contactLimits, ...others } = change;
  const rules = { ...others, ...(contactLimits === undefined ? {} : { contact_limits: contactLimits }) };
  const columns = Object.fromEntries(Object.entries(rules).map(([name, value]) => [name, value === null ? null : JSON.stringify(value)]));
  const holdsCalls = change.hours !== undefined || change.pace !== undefined || contactLimits !== undefined;
  // Let concurrent changes to a partner's rules wait for each other here, so that none of them is lost.
  await trx('partners')
    .where({ id: owner.partnerId })
    .update({ rules_version: trx.raw('coalesce(rules_version, 0) + 1') });
  const before = await findRules(trx, id);
  check(before);
  await upsertRules(trx, id, owner.partnerId, holdsCalls ? { ...columns, changed: mark } : columns);
  return before;
}

/** Marks a scope, so that its held calls become due. */
export function markChanged(trx: Knex.Transaction, scopeId: string, partnerId: string, mark: string): Promise<void> {
  return upsertRules(trx, scopeId, partnerId, { changed: mark });
}

async function upsertRules(trx: Knex.Transaction, scopeId: string, partnerId: string, columns: object): Promise<void> {
  await trx('protection_rules')
    .insert({ ...noRules, scope_id: scopeId, partner_id: partnerId, ...columns })
    .onConflict('scope_id')
    .merge(columns);
}

const noRules = { hours: null, countries: null, kinds: null, pace: null, contact_limits: null, changed: null };

type ScopeRow = { id: string; name: string; account_id: string | null; partner_id: string };

export async function findScope(database: Lane, access: ProtectionAccess, kind: ProtectionScope, id: string): Promise<RuleScope | null> {
  const [row] = await database.query<ScopeRow>(scopeSql[kind], [id]);
  if (!row || !isInReach(row, access)) return null;
  return { kind, id: row.id, name: row.name, owner: { accountId: row.account_id, partnerId: row.partner_id } };
}

const scopeSql: Readonly<Record<ProtectionScope, string>> = {
  partner: 'SELECT id, name, NULL AS account_id, id AS partner_id FROM partners WHERE id = ?',
  account: 'SELECT id, name, id AS account_id, partner_id FROM accounts WHERE id = ?',
  campaign: 'SELECT c.id, c.name, a.id AS account_id, a.partner_id FROM campaigns c JOIN accounts a ON a.id = c.account_id WHERE c.id = ?',
};

function isInReach(row: ScopeRow, access: ProtectionAccess): boolean {
  if (access.kind === 'all') return true;
  return access.kind === 'account' ? row.account_id === access.accountId : row.partner_id === access.partnerId;
}

type ChangedScope = { scope_id: string; campaign_id: string | null; account_id: string | null; partner_id: string; changed: string };

/** A claim then applies the new rules, and may hold a call again. Otherwise, it could lapse while it waits for the previous hours. */
async function makeHeldDue(database: Lane, now: Millis, signal: AbortSignal): Promise<number> {
  const scopes = await database.query<ChangedScope>(
    `SELECT r.scope_id, c.id AS campaign_id, a.id AS account_id, r.partner_id, r.changed
     FROM protection_rules r LEFT JOIN campaigns c ON c.id = r.scope_id LEFT JOIN accounts a ON a.id = coalesce(c.account_id, r.scope_id)
     WHERE r.changed IS NOT NULL ORDER BY r.scope_id`,
    [],
  );
  if (scopes.length === 0) return 0;
  // Wait for batches and claims that may be holding calls because of the previous hours.
  await requireSeen(database);
  let due = 0;
  await eachDespiteErrors(scopes, signal, async (scope) => {
    const { scope_id, campaign_id: campaignId, account_id, partner_id, changed } = scope;
    for await (const accountId of accountsIn(database, { accountId: account_id, partnerId: partner_id }))
      due += await sumOfCalls(database, (lane) => markHeldDue(lane, now, { accountId, campaignId }, signal));
    // If the hours were changed again in the meantime, the next run starts again.
    await database.write('protection_rules').where({ scope_id, changed }).update({ changed: null });
  });
  return due;
}
