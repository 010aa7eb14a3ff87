import type { Knex } from 'knex';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import type { RestrictedKind } from '#contract/protection/numbers.ts';
import type { CampaignRules } from '../../domain/model.ts';
import { defaultRules } from '../../domain/protection/judge.ts';
import type { Lane } from '../engine/database.ts';
import { inChunks } from '../engine/database.ts';
import type { ProtectionRulesRow } from '../engine/tables.ts';

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
