import type { Knex } from 'knex';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import type { ContactLimits, Pace } from '#contract/protection/dialing.ts';
import type { RestrictedKind } from '#contract/protection/numbers.ts';
import type { CallCampaign, CampaignRules, ScopeContactLimits } from '../../domain/ports.ts';
import { defaultRules } from '../../domain/protection/judge.ts';
import { inChunks, type Lane } from '../engine/database.ts';
import type { ProtectionRulesRow } from '../engine/tables.ts';

// What a process remembers of rules and do-not-call lists. (It also remembers the limits of keys: see keys/authorization.ts.)

const maxKnown = 10_000;

export type KnownRules = ReturnType<typeof knownRules>;

/**
 * Remembers the rules of campaigns. This only saves a lookup: the statement that places a call makes sure that the call was checked against
 * the current version, and the dialer compares versions before each claim.
 */
export function knownRules(database: Lane) {
  const known = new Map<string, CampaignRules>();
  function remember(campaignId: string, rules: CampaignRules): void {
    if (known.size >= maxKnown) known.clear();
    if (rules.version === null) known.delete(campaignId);
    else known.set(campaignId, rules);
  }
  return {
    get: (campaignId: string) => known.get(campaignId) ?? defaultRules,
    async load(campaignIds: readonly string[]) {
      const rules = await readCampaignRules(database, campaignIds);
      const rulesFor = (campaignId: string) => rules.get(campaignId) ?? defaultRules;
      for (const campaignId of campaignIds) remember(campaignId, rulesFor(campaignId));
      return rulesFor;
    },
    /** Returns the current rules and names of these calls' campaigns. Reads the rules in a transaction, unless the known ones are current. */
    async current(calls: readonly { campaign_id: string }[], trx: Knex.Transaction) {
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
        rulesFor: (campaignId: string) => current.get(campaignId) ?? defaultRules,
        campaigns: new Map(Array.from(rows, ([id, row]) => [id, toCampaign(row)])),
        /** Whether anything is stopped, anywhere. */
        hasStops: [...rows.values()].some(({ has_stops }) => Boolean(has_stops)),
        /** Whether calls of a revoked key have yet to be cancelled. */
        hasCallsLeft: [...rows.values()].some(({ has_calls_left }) => Boolean(has_calls_left)),
      };
    },
  };
}

export type CurrentRules = Awaited<ReturnType<KnownRules['current']>>;

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
         EXISTS (SELECT 1 FROM revoked_api_keys WHERE cancelling_since IS NOT NULL)
           OR EXISTS (SELECT 1 FROM users WHERE deleted_at IS NOT NULL AND cancelling_since IS NOT NULL) AS has_calls_left
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

type RuleRow = { campaign_id: string; account_id: string; partner_id: string; rules_version: number | null } & {
  [Column in 'scope_id' | 'hours' | 'countries' | 'kinds' | 'pace' | 'contact_limits']: ProtectionRulesRow[Column] | null;
};

/**
 * Reads the rules that apply to campaigns: the calling hours of the most specific scope that has its own, and likewise the rules about numbers.
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
    countries: parseColumn<string[]>(first('countries')?.countries) ?? [],
    kinds: parseColumn<RestrictedKind[]>(first('kinds')?.kinds) ?? [],
    paces: bySpecificity.flatMap(({ scope_id, pace: json, account_id, campaign_id }) => {
      const pace = parseColumn<Pace>(json);
      if (pace === null || scope_id === null) return [];
      return [{ ...pace, scopeId: scope_id, accountId: account_id, campaignId: scope_id === campaign_id ? campaign_id : null }];
    }),
    contactLimits: limits === undefined ? null : toContactLimits(limits),
  };
}

function toContactLimits({ scope_id, contact_limits, campaign_id, account_id, partner_id }: RuleRow): ScopeContactLimits | null {
  const limits = parseColumn<ContactLimits>(contact_limits);
  if (scope_id === null || limits === null) return null;
  const scope = scope_id === campaign_id ? 'campaign' : scope_id === account_id ? 'account' : 'partner';
  const counts = { accountId: scope === 'partner' ? null : account_id, partnerId: partner_id };
  return { limits, scope, scopeId: scope_id, counts };
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
  const hours = parseColumn<HoursRule[]>(json) ?? [];
  sharedHours.set(json, hours);
  return hours;
}

/** Parses a column. The contract's schemas checked it before it was stored. */
export function parseColumn<Parsed>(json: string | null | undefined): Parsed | null {
  return json == null ? null : JSON.parse(json);
}

/** Parses a campaign's settings. */
export function parseSettings(json: string | null): Readonly<Record<string, string>> {
  return parseColumn(json) ?? {};
}

/** In ms. The lists are refreshed only while calls are placed. */
const refreshEvery = 200;
const numbersPerRead = 5_000;
const additionsPerRead = 20;
const minFilterSize = 4_000;
/** All filters together take at most 30 MB. If a partner's lists no longer fit, the numbers of all of the partner's calls are looked up. */
const maxNumbers = 20_000_000;
const maxCampaigns = 10_000;

/** The lists of a partner and its accounts. The filter, if any, has all entries of this version. */
type Lists = { partnerId: string; version: number; filter: NumberFilter | null };

export type KnownLists = ReturnType<typeof knownLists>;

/**
 * Remembers which numbers may be on do-not-call lists, because looking one up among ten million takes a third of the time of a placed call
 * on SQLite. This only saves the lookup: the statement that places a call skips it only if the version is still current.
 */
export function knownLists(database: Lane) {
  const { read } = database;
  const byPartner = new Map<string, Lists>();
  const byCampaign = new Map<string, Lists | null>();
  const newCampaigns = new Set<string>();
  let room = maxNumbers;
  let isAsked = false;
  let isClosed = false;
  let refreshing: Promise<void> | undefined;

  async function findPartners(): Promise<void> {
    for (const ids of inChunks([...newCampaigns])) {
      const rows = await read('campaigns').join('accounts', 'accounts.id', 'campaigns.account_id').whereIn('campaigns.id', ids).select({
        id: 'campaigns.id',
        partnerId: 'accounts.partner_id',
      });
      for (const { id, partnerId } of rows) {
        const lists = byPartner.get(partnerId) ?? { partnerId, version: 0, filter: null };
        byPartner.set(partnerId, lists);
        byCampaign.set(id, lists);
      }
      for (const id of ids) newCampaigns.delete(id);
    }
  }

  async function refresh(): Promise<void> {
    await findPartners();
    for (const ids of inChunks([...byPartner.keys()])) {
      const rows = await read('partners').whereIn('id', ids).whereNotNull('do_not_call_version').select('id', 'do_not_call_version');
      for (const { id, do_not_call_version: version } of rows) {
        const lists = byPartner.get(id);
        if (!lists || version === null || lists.version === version) continue;
        if (!lists.filter || !(await addNewer(lists, lists.filter))) await fill(lists, version);
      }
    }
  }

  /** Adds the numbers of some newer versions. @returns false if some of them are no longer stored, or the filter is full */
  async function addNewer(lists: Lists, filter: NumberFilter): Promise<boolean> {
    const [same, ...newer] = await read('do_not_call_additions')
      .where({ partner_id: lists.partnerId })
      .where('version', '>=', lists.version)
      .orderBy('version')
      .limit(additionsPerRead);
    // The oldest additions are deleted first. So if the addition of the filter's version is still stored, all newer ones are, too.
    if (same?.version !== lists.version) return false;
    for (const { version, phones } of newer) {
      for (const phone of phones.split(' ')) filter.add(phone);
      lists.version = version;
    }
    return filter.count() <= filter.capacity;
  }

  /** @param version must have been committed before this is called, so that the filter gets all of its entries */
  async function fill(lists: Lists, version: number): Promise<void> {
    room += lists.filter?.capacity ?? 0;
    Object.assign(lists, { version: 0, filter: null });
    let count = 0;
    for await (const chunk of chunks(lists.partnerId, 'count(*)')) count += Number(chunk);
    const capacity = Math.max(minFilterSize, Math.ceil(count * 1.25));
    if (capacity > room) {
      byPartner.delete(lists.partnerId);
      return;
    }
    const filter = numberFilter(capacity);
    // Select the numbers as one text, because drivers take much longer to read thousands of rows.
    for await (const phones of chunks(lists.partnerId, "string_agg(phone, ' ')"))
      for (const phone of String(phones).split(' ')) filter.add(phone);
    room -= capacity;
    Object.assign(lists, { version, filter });
  }

  /** Reads a partner's entries in order, in short statements. @param select the SQL of an aggregate @returns its value for each chunk */
  async function* chunks(partnerId: string, select: string): AsyncGenerator<string | number> {
    for (let after = ''; ; ) {
      const [chunk] = await database.query<{ last: string | null; found: string | number }>(
        `SELECT max(phone) AS last, ${select} AS found FROM (
           SELECT phone FROM do_not_call WHERE partner_id = ? AND phone > ? ORDER BY phone LIMIT ${numbersPerRead}
         ) AS chunk`,
        [partnerId, after],
      );
      if (isClosed) throw new Error('The storage was closed.');
      if (!chunk || chunk.last === null) return;
      yield chunk.found;
      after = chunk.last;
    }
  }

  const timer = setInterval(() => {
    if (!isAsked || refreshing) return;
    isAsked = false;
    // Ignore errors, because with an outdated version, the statement that places a call looks up the number itself.
    refreshing = refresh()
      .catch(() => undefined)
      .finally(() => {
        refreshing = undefined;
      });
  }, refreshEvery).unref();

  return {
    async close(): Promise<void> {
      clearInterval(timer);
      isClosed = true;
      await refreshing;
    },
    /** Returns a version of the lists in which the number isn't listed, or null if there's none or it isn't known. */
    unlistedVersion(campaignId: string, phone: string): number | null {
      isAsked = true;
      const lists = byCampaign.get(campaignId);
      if (lists === undefined) {
        if (byCampaign.size >= maxCampaigns) byCampaign.clear();
        byCampaign.set(campaignId, null);
        newCampaigns.add(campaignId);
      }
      return lists?.filter && !lists.filter.mayHave(phone) ? lists.version : null;
    },
  };
}

/** With 12 bits per number, about one in a hundred numbers that aren't in the set seem to be in it. */
const bitsPerNumber = 12;
const bitsSet = 6;
/** All bits of a number are in one block, which is as long as a cache line of the processor. */
const wordsPerBlock = 16;

/** A set of numbers that may also seem to contain other numbers: a blocked Bloom filter (Putze, Sanders and Singler, 2007). */
type NumberFilter = { add(phone: string): void; mayHave(phone: string): boolean; count(): number; capacity: number };

function numberFilter(capacity: number): NumberFilter {
  const blocks = Math.ceil((capacity * bitsPerNumber) / (wordsPerBlock * 32));
  const words = new Int32Array(blocks * wordsPerBlock);
  let count = 0;
  const firstWord = (hash: number) => Math.floor((hash / 2 ** 32) * blocks) * wordsPerBlock;
  return {
    capacity,
    count: () => count,
    add(phone) {
      count++;
      const hash = toHash(phone);
      const first = firstWord(hash);
      for (let n = 0, bits = next(hash); n < bitsSet; n++, bits = next(bits)) {
        const word = first + (bits >>> 28);
        words[word] = (words[word] ?? 0) | (1 << (bits >>> 23));
      }
    },
    mayHave(phone) {
      const hash = toHash(phone);
      const first = firstWord(hash);
      for (let n = 0, bits = next(hash); n < bitsSet; n++, bits = next(bits)) {
        if (((words[first + (bits >>> 28)] ?? 0) & (1 << (bits >>> 23))) === 0) return false;
      }
      return true;
    },
  };
}

/** FNV-1a, followed by the last step of MurmurHash3, because the first bits of FNV-1a hardly depend on the last digits. */
function toHash(phone: string): number {
  let hash = 0x811c9dc5;
  for (let n = 0; n < phone.length; n++) hash = Math.imul(hash ^ phone.charCodeAt(n), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A linear congruential generator. Only its high bits are used, because the low ones aren't random enough. */
function next(bits: number): number {
  return Math.imul(bits, 1_664_525) + 1_013_904_223;
}
