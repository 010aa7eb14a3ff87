import type { Knex } from 'knex';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import type { RestrictedKind } from '#contract/protection/numbers.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import { eachDespiteErrors } from '../../domain/each-despite-errors.ts';
import type { Millis } from '../../domain/instant.ts';
import type { CampaignRules, RuleScope } from '../../domain/model.ts';
import type { CheckRules, ProtectionAccess, RuleStore, ScopeRules } from '../../domain/ports.ts';
import { defaultRules } from '../../domain/protection/judge.ts';
import { recordAudit } from '../audit/audit.ts';
import { inChunks, type Lane, type Lanes, requireSeen } from '../engine/database.ts';
import { sumOfShards } from '../engine/shards.ts';
import type { ProtectionRulesRow } from '../engine/tables.ts';
import { markHeldDue } from '../queue/queue.ts';
import { accountsIn } from './do-not-call.ts';
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
        await writeRules(trx, scope, change, event.id, check);
        await recordAudit(trx, event);
      });
      await requireSeen(database);
    },

    makeHeldDue: (now, signal) => makeHeldDue(background, now, signal),

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

type ScopeRow = { id: string; name: string; account_id: string | null; partner_id: string };

/** Finds a partner, account or campaign that the viewer can see. */
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

type RuleRow = { campaign_id: string; account_id: string; partner_id: string; rules_version: number | null } & {
  [Column in 'scope_id' | 'hours' | 'countries' | 'kinds']: ProtectionRulesRow[Column] | null;
};

/**
 * Reads the rules that apply to campaigns: the calling hours of the most specific scope that has any, and likewise the rules about numbers.
 *
 * @param on a transaction, or the pool
 */
export async function readCampaignRules(
  database: Lane,
  campaignIds: readonly string[],
  on = database.read,
): Promise<Map<string, CampaignRules>> {
  const rules = new Map<string, CampaignRules>();
  for (const ids of inChunks(campaignIds)) {
    const rows = await database.query<RuleRow>(
      `SELECT c.id AS campaign_id, a.id AS account_id, a.partner_id, p.rules_version, s.scope_id, s.hours, s.countries, s.kinds
       FROM campaigns c CROSS JOIN accounts a CROSS JOIN partners p LEFT JOIN protection_rules s ON s.scope_id IN (c.id, a.id, p.id)
       WHERE c.id IN (${ids.map(() => '?')}) AND a.id = c.account_id AND p.id = a.partner_id`,
      ids,
      on,
    );
    for (const [campaignId, own] of Map.groupBy(rows, (row) => row.campaign_id)) rules.set(campaignId, toRules(own));
  }
  return rules;
}

function toRules(rows: readonly RuleRow[]): CampaignRules {
  const [any] = rows;
  if (!any) return defaultRules;
  const bySpecificity = [any.campaign_id, any.account_id, any.partner_id].flatMap((id) => rows.find((row) => row.scope_id === id) ?? []);
  const first = (column: 'hours' | 'countries' | 'kinds') => bySpecificity.find((row) => row[column] !== null);
  const hours = first('hours');
  return {
    version: any.rules_version,
    hours: shareHours(hours?.hours ?? null),
    hoursFrom: hours?.scope_id ?? null,
    countries: parseList<string>(first('countries')?.countries ?? null),
    kinds: parseList<RestrictedKind>(first('kinds')?.kinds ?? null),
  };
}

const maxShared = 100;
const sharedHours = new Map<string, readonly HoursRule[]>();

/**
 * Parses calling hours. Returns the same array for the same text, because many campaigns may share hundreds of rules. Parsing these takes
 * long, and so does preparing each array for use (`domain/protection/calling-hours.ts`).
 */
function shareHours(json: string | null): readonly HoursRule[] {
  if (json === null) return [];
  const known = sharedHours.get(json);
  if (known) return known;
  if (sharedHours.size >= maxShared) sharedHours.clear();
  const hours = parseList<HoursRule>(json);
  sharedHours.set(json, hours);
  return hours;
}

/** Parses a column of the rules. The contract's schemas checked it before it was stored. */
export function parseList<Item>(json: string | null): readonly Item[] {
  return json === null ? [] : JSON.parse(json);
}

const maxKnown = 10_000;

/**
 * Remembers the rules of campaigns. This only saves a lookup: the statement that places a call makes sure that the call was checked against
 * the current version, and the dialer compares versions before each claim.
 */
export type KnownRules = {
  get(campaignId: string): CampaignRules;
  /** Reads the rules of these campaigns. */
  load(campaignIds: readonly string[]): Promise<(campaignId: string) => CampaignRules>;
  /** Returns the current rules of these calls' campaigns. Reads them in a transaction, unless the known ones are current. */
  current(
    calls: readonly { campaign_id: string; account_id: string }[],
    trx: Knex.Transaction,
  ): Promise<(campaignId: string) => CampaignRules>;
};

export function knownRules(database: Lane): KnownRules {
  const known = new Map<string, CampaignRules>();
  function remember(campaignId: string, rules: CampaignRules): void {
    if (known.size >= maxKnown) known.clear();
    if (rules.version === null) known.delete(campaignId);
    else known.set(campaignId, rules);
  }
  return {
    get: (campaignId) => known.get(campaignId) ?? defaultRules,
    async load(campaignIds) {
      const rules = await readCampaignRules(database, campaignIds);
      const rulesFor = (campaignId: string) => rules.get(campaignId) ?? defaultRules;
      for (const campaignId of campaignIds) remember(campaignId, rulesFor(campaignId));
      return rulesFor;
    },
    async current(calls, trx) {
      const accountByCampaign = new Map(calls.map((call) => [call.campaign_id, call.account_id]));
      const versions = await readVersions(database, [...new Set(accountByCampaign.values())], trx);
      // Keep these in a map of their own, because adding one campaign to the cache may evict others.
      const current = new Map<string, CampaignRules>();
      for (const [campaign, account] of accountByCampaign) {
        const rules = known.get(campaign) ?? defaultRules;
        if (versions.get(account) === rules.version) current.set(campaign, rules);
      }
      const ids = [...accountByCampaign.keys()].filter((campaign) => !current.has(campaign));
      for (const [id, rules] of ids.length === 0 ? [] : await readCampaignRules(database, ids, trx)) {
        current.set(id, rules);
        remember(id, rules);
      }
      return (campaignId) => current.get(campaignId) ?? defaultRules;
    },
  };
}

/** Returns the version of the rules for each account. */
async function readVersions(database: Lane, accountIds: readonly string[], trx: Knex.Transaction): Promise<Map<string, number | null>> {
  const versions = new Map<string, number | null>();
  for (const ids of inChunks(accountIds)) {
    const rows = await database.query<{ id: string; rules_version: number | null }>(
      `SELECT a.id, p.rules_version FROM accounts a CROSS JOIN partners p
       WHERE a.id IN (${ids.map(() => '?')}) AND p.id = a.partner_id`,
      ids,
      trx,
    );
    for (const row of rows) versions.set(row.id, row.rules_version);
  }
  return versions;
}

type ChangedScope = { scope_id: string; campaign_id: string | null; account_id: string | null; partner_id: string; hours_changed: string };

/**
 * Makes held calls due in scopes whose calling hours have changed since the last time. A claim then applies the new hours, and may hold a
 * call again. Otherwise, a call would wait until the previous hours open, and could lapse although the new ones are open.
 */
export async function makeHeldDue(database: Lane, now: Millis, signal: AbortSignal): Promise<number> {
  const scopes = await database.query<ChangedScope>(
    `SELECT r.scope_id, c.id AS campaign_id, a.id AS account_id, r.partner_id, r.hours_changed
     FROM protection_rules r LEFT JOIN campaigns c ON c.id = r.scope_id LEFT JOIN accounts a ON a.id = coalesce(c.account_id, r.scope_id)
     WHERE r.hours_changed IS NOT NULL ORDER BY r.scope_id`,
    [],
  );
  if (scopes.length === 0) return 0;
  // Wait for batches and claims that may be holding calls because of the previous hours.
  await requireSeen(database);
  let due = 0;
  await eachDespiteErrors(scopes, signal, async (scope) => {
    const { scope_id, campaign_id: campaignId, account_id, partner_id, hours_changed } = scope;
    for await (const accountId of accountsIn(database, { accountId: account_id, partnerId: partner_id }))
      due += await sumOfShards(database, (shard) => markHeldDue(shard, now, { accountId, campaignId }, signal));
    // If the hours were changed again in the meantime, the next run starts again.
    await database.write('protection_rules').where({ scope_id, hours_changed }).update({ hours_changed: null });
  });
  return due;
}
