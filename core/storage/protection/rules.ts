import type { Knex } from 'knex';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import type { ContactLimits, Pace } from '#contract/protection/dialing.ts';
import type { RestrictedKind } from '#contract/protection/numbers.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import { eachDespiteErrors } from '../../domain/each-despite-errors.ts';
import { instant, type Millis } from '../../domain/instant.ts';
import type { CallCampaign, CampaignRules, RuleScope, ScopeContactLimits } from '../../domain/model.ts';
import type { CheckRules, ProtectionAccess, RuleStore, ScopeRules } from '../../domain/ports.ts';
import { defaultRules } from '../../domain/protection/judge.ts';
import { recordAudit } from '../audit/audit.ts';
import { sumOfCalls } from '../engine/call-lanes.ts';
import { inChunks, type Lane, type Lanes, requireSeen } from '../engine/database.ts';
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
    hours: row?.hours == null ? null : parseList(row.hours),
    countries: row?.countries == null ? null : parseList(row.countries),
    kinds: row?.kinds == null ? null : parseList(row.kinds),
    pace: row?.pace == null ? null : parsePace(row.pace),
    contactLimits: row?.contact_limits == null ? null : parseContactLimits(row.contact_limits),
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

type RuleRow = { campaign_id: string; account_id: string; partner_id: string; rules_version: number | null } & {
  [Column in 'scope_id' | 'hours' | 'countries' | 'kinds' | 'pace' | 'contact_limits']: ProtectionRulesRow[Column] | null;
};

/**
 * Reads the rules that apply to campaigns: the calling hours of the most specific scope that has its own, and likewise the rules about numbers.
 *
 * @param on a transaction, or the pool
 */
async function readCampaignRules(database: Lane, campaignIds: readonly string[], on = database.read): Promise<Map<string, CampaignRules>> {
  const rules = new Map<string, CampaignRules>();
  for (const ids of inChunks(campaignIds)) {
    const rows = await database.query<RuleRow>(
      `SELECT c.id AS campaign_id, a.id AS account_id, a.partner_id, p.rules_version, s.scope_id, s.hours, s.countries, s.kinds, s.pace,
         s.contact_limits
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
  // All rows have the same campaign, account and partner.
  const [own] = rows;
  if (!own) return defaultRules;
  const bySpecificity = [own.campaign_id, own.account_id, own.partner_id].flatMap((id) => rows.find((row) => row.scope_id === id) ?? []);
  const first = (column: 'hours' | 'countries' | 'kinds' | 'contact_limits') => bySpecificity.find((row) => row[column] !== null);
  const hours = first('hours');
  const limits = first('contact_limits');
  return {
    version: own.rules_version,
    hours: shareHours(hours?.hours ?? null),
    hoursFrom: hours?.scope_id ?? null,
    countries: parseList<string>(first('countries')?.countries ?? null),
    kinds: parseList<RestrictedKind>(first('kinds')?.kinds ?? null),
    paces: bySpecificity.flatMap(({ scope_id, pace, account_id, campaign_id }) => {
      if (pace === null || scope_id === null) return [];
      return [{ ...parsePace(pace), scopeId: scope_id, accountId: account_id, campaignId: scope_id === campaign_id ? campaign_id : null }];
    }),
    contactLimits: limits === undefined ? null : toContactLimits(limits),
  };
}

function toContactLimits({ scope_id, contact_limits, campaign_id, account_id, partner_id }: RuleRow): ScopeContactLimits | null {
  if (scope_id === null || contact_limits === null) return null;
  const scope = scope_id === campaign_id ? 'campaign' : scope_id === account_id ? 'account' : 'partner';
  const counts = { accountId: scope === 'partner' ? null : account_id, partnerId: partner_id };
  return { limits: parseContactLimits(contact_limits), scope, scopeId: scope_id, counts };
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
function parseList<Item>(json: string | null): readonly Item[] {
  return json === null ? [] : JSON.parse(json);
}

function parsePace(json: string): Pace {
  return JSON.parse(json);
}

function parseContactLimits(json: string): ContactLimits {
  return JSON.parse(json);
}

const maxKnown = 10_000;

/**
 * Remembers the rules of campaigns. This only saves a lookup: the statement that places a call makes sure that the call was checked against
 * the current version, and the dialer compares versions before each claim.
 */
export type KnownRules = {
  get(campaignId: string): CampaignRules;
  load(campaignIds: readonly string[]): Promise<(campaignId: string) => CampaignRules>;
  /** Returns the current rules and names of these calls' campaigns. Reads the rules in a transaction, unless the known ones are current. */
  current(calls: readonly { campaign_id: string }[], trx: Knex.Transaction): Promise<CurrentRules>;
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
      const rows = await readCampaigns(database, [...new Set(calls.map((call) => call.campaign_id))], trx);
      // Keep these in a map of their own, because adding one campaign to the cache may evict others.
      const current = new Map<string, CampaignRules>();
      for (const { id, rules_version } of rows.values()) {
        const rules = known.get(id) ?? defaultRules;
        if (rules_version === rules.version) current.set(id, rules);
      }
      const ids = [...rows.keys()].filter((campaign) => !current.has(campaign));
      for (const [id, rules] of ids.length === 0 ? [] : await readCampaignRules(database, ids, trx)) {
        current.set(id, rules);
        remember(id, rules);
      }
      return {
        rulesFor: (campaignId) => current.get(campaignId) ?? defaultRules,
        campaigns: new Map(Array.from(rows, ([id, row]) => [id, toCampaign(row)])),
        hasStops: [...rows.values()].some(({ has_stops }) => Boolean(has_stops)),
        hasCallsLeft: [...rows.values()].some(({ has_calls_left }) => Boolean(has_calls_left)),
      };
    },
  };
}

/** @property hasStops whether anything is stopped, anywhere @property hasCallsLeft whether calls of a revoked key have yet to be cancelled */
export type CurrentRules = {
  rulesFor: (campaignId: string) => CampaignRules;
  campaigns: ReadonlyMap<string, CallCampaign>;
  hasStops: boolean;
  hasCallsLeft: boolean;
};

type CurrentRow = { id: string; name: string; settings: string | null; account_id: string; account_name: string } & {
  partner_id: string;
  partner_name: string;
  rules_version: number | null;
  has_stops: number | boolean;
  has_calls_left: number | boolean;
};

/** Reads campaigns, and the version of the rules that apply to each. */
async function readCampaigns(database: Lane, campaignIds: readonly string[], trx: Knex.Transaction): Promise<Map<string, CurrentRow>> {
  const campaigns = new Map<string, CurrentRow>();
  for (const ids of inChunks(campaignIds)) {
    const rows = await database.query<CurrentRow>(
      `SELECT c.id, c.name, c.settings, a.id AS account_id, a.name AS account_name, p.id AS partner_id, p.name AS partner_name,
         p.rules_version, EXISTS (SELECT 1 FROM dialing_stops) AS has_stops,
         EXISTS (SELECT 1 FROM revoked_api_keys WHERE cancelling_since IS NOT NULL) AS has_calls_left
       FROM campaigns c CROSS JOIN accounts a CROSS JOIN partners p
       WHERE c.id IN (${ids.map(() => '?')}) AND a.id = c.account_id AND p.id = a.partner_id`,
      ids,
      trx,
    );
    for (const row of rows) campaigns.set(row.id, row);
  }
  return campaigns;
}

function toCampaign(row: CurrentRow): CallCampaign {
  return {
    ...{ id: row.id, name: row.name, settings: parseSettings(row.settings) },
    account: { id: row.account_id, name: row.account_name },
    partner: { id: row.partner_id, name: row.partner_name },
  };
}

/** Parses a campaign's settings, which were checked before they were stored. */
export function parseSettings(json: string | null): Readonly<Record<string, string>> {
  return json === null ? {} : JSON.parse(json);
}

type ChangedScope = { scope_id: string; campaign_id: string | null; account_id: string | null; partner_id: string; changed: string };

/**
 * A claim then applies the new rules, and may hold a call again. Otherwise, a call would wait until the previous hours open, and could lapse
 * although the new ones are open.
 */
export async function makeHeldDue(database: Lane, now: Millis, signal: AbortSignal): Promise<number> {
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
