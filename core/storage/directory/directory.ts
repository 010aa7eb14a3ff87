import type { Knex } from 'knex';
import type { Named } from '#contract/console/common.ts';
import type { CampaignAccess } from '../../domain/directory/scope.ts';
import type { AuditEvent, Tenancy } from '../../domain/model.ts';
import type { Belonging, CallScope, DirectoryKind, DirectoryStore, ListFilter, Managed, ManagedAccess } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';
import { recordAudit, recordAudits } from '../audit/audit.ts';
import { type Condition, either, equal, matching, oneOf, oneSelected } from '../engine/conditions.ts';
import { type Dialect, inChunks, type Lane, type Lanes, requireSeen } from '../engine/database.ts';
import { isForeignKeyViolation } from '../engine/errors.ts';
import { parseSettings } from '../protection/known.ts';

type TenancyRow = Named & { partner_id: string; partner_name: string };
type CampaignRow = TenancyRow & { account_id: string; account_name: string; settings: string | null };

export function directoryStore({ console, lists, background }: Lanes): DirectoryStore {
  const { kind, read, write } = console;
  /** The IDs of the campaigns that were hidden when `restoreCampaigns` last ran. */
  let hidden: string[] = [];

  return {
    setUp(partner, account, campaign, events) {
      return write.transaction(async (trx) => {
        // Without this lock, two cores on PostgreSQL could both create the first partner. SQLite has only one writer.
        if (kind === 'postgres') await trx.raw('LOCK TABLE partners IN SHARE ROW EXCLUSIVE MODE');
        if ((await trx('partners').first('id')) !== undefined) return false;
        const created_at = events[0].at;
        await trx('partners').insert({ id: partner.id, name: partner.name, created_at });
        await trx('accounts').insert({ id: account.id, name: account.name, partner_id: account.partnerId, created_at });
        await trx('campaigns').insert({ id: campaign.id, name: campaign.name, account_id: campaign.accountId, created_at });
        await recordAudits(trx, events);
        return true;
      });
    },

    async create(kind, { id, name }, ownerId, event) {
      const owner = kind === 'partner' ? {} : { [`${ownerOf[kind]}_id`]: ownerId };
      const creating = write.transaction(async (trx) => {
        await trx.from(`${kind}s`).insert({ id, name, created_at: event.at, ...owner });
        await recordAudit(trx, event);
      });
      await creating.catch((error: unknown) => {
        throw isForeignKeyViolation(error) ? new Problem('not-found', `The ${ownerOf[kind]} ${ownerId} doesn't exist.`) : error;
      });
    },

    change(kind, { id, name, settings }, event) {
      return write.transaction(async (trx) => {
        const columns = { name, ...(settings && { settings: JSON.stringify(settings) }) };
        const changed: number = await trx.from(`${kind}s`).where({ id }).update(columns);
        if (changed > 0) await recordAudit(trx, event);
        return changed > 0;
      });
    },

    async delete(kind, id, event) {
      if (id.startsWith(hiddenPrefix)) return null;
      const before = await findBelonging(console.read, kind, id);
      if (before.length > 0) return before;
      if (kind === 'campaign' && console.kind === 'postgres') return deleteWithoutCalls(console, id, event);
      // On SQLite, nothing else writes during this transaction, so it sees every call.
      return write.transaction((trx) => deleteRow(trx, kind, { id, now: id }, event));
    },

    async restoreCampaigns() {
      const before = hidden;
      // The full stop sorts right after the hyphen.
      hidden = await background.read('campaigns').whereBetween('id', [hiddenPrefix, 'deleting.']).pluck('id');
      const left = hidden.filter((id) => before.includes(id));
      for (const id of left) await background.write('campaigns').where({ id }).update('id', id.slice(-idLength));
      return left.length;
    },

    async list(kind, access, ownerId, filter, limit) {
      const rows = select[kind](lists, access);
      const owner = ownerOf[kind];
      if (owner && ownerId !== null) rows.where(`${allOf[owner][0]}.id`, ownerId);
      const alsoNamed = kind === 'campaign' && ownerId === null ? 'a' : undefined;
      return toManaged[kind](lists, await page(console.kind, rows, allOf[kind][0], filter, limit, alsoNamed));
    },

    async find(kind, access, id) {
      const rows = await select[kind](console, access).where(`${allOf[kind][0]}.id`, id);
      const [managed] = await toManaged[kind](console, rows);
      return managed ?? null;
    },

    async all(kind) {
      const [table, order] = allOf[kind];
      const rows: (Partial<CampaignRow> & Named & { external_id: string | null })[] = await select[kind](console, { kind: 'all' })
        .select(`${table}.external_id`)
        .orderBy([...order]);
      return rows.map(({ id, name, external_id, partner_id, partner_name = '', account_id, account_name = '' }) => {
        const account = account_id === undefined ? null : { id: account_id, name: account_name };
        return {
          id,
          name,
          externalId: external_id,
          owner: account ?? (partner_id === undefined ? null : { id: partner_id, name: partner_name }),
        };
      });
    },

    async findTenancy({ kind, id }) {
      const columns = { id: 't.id', name: 't.name', partner_id: 'p.id', partner_name: 'p.name' };
      const [row]: TenancyRow[] = await read(`${kind}s as t`)
        .join('partners as p', 'p.id', kind === 'partner' ? 't.id' : 't.partner_id')
        .select(columns)
        .where('t.id', id);
      return row ? { kind, ...toTenancy(row) } : null;
    },

    async searchTenancies(text, limit) {
      const partners = lists.read('partners as t').select('t.id', 't.name', { partner_id: 't.id', partner_name: 't.name' });
      const accounts = lists
        .read('accounts as t')
        .join('partners as p', 'p.id', 't.partner_id')
        .select('t.id', 't.name', 't.partner_id', { partner_name: 'p.name' });
      const [foundPartners, foundAccounts] = await Promise.all([
        bestMatches(lists, partners, 't.id', text, limit),
        bestMatches(lists, accounts, 't.partner_id', text, limit),
      ]);
      const all = [
        ...foundPartners.map((row) => ({ kind: 'partner' as const, ...row })),
        ...foundAccounts.map((row) => ({ kind: 'account' as const, ...row })),
      ];
      return sortByMatch(all)
        .slice(0, limit)
        .map(({ kind, ...row }) => ({ kind, ...toTenancy(row) }));
    },
  };
}

const ownerOf = { partner: null, account: 'partner', campaign: 'account' } as const;

/** The table's name in {@link select}, and the order of all rows. */
const allOf = {
  partner: ['p', ['p.name', 'p.id']],
  account: ['a', ['p.name', 'a.name', 'a.id']],
  campaign: ['c', ['a.name', 'c.name', 'c.id']],
} as const;

/** Queries the partners (`p`), accounts (`a`) or campaigns (`c`) to which a viewer has access. */
const select: { readonly [Kind in DirectoryKind]: (lane: Lane, access: ManagedAccess[Kind]) => Knex.QueryBuilder } = {
  partner: ({ read }, access) => within(read('partners as p'), access).select({ id: 'p.id', name: 'p.name' }),
  account: ({ read }, access) => within(read('accounts as a').join('partners as p', 'p.id', 'a.partner_id'), access).select(accountColumns),
  campaign: ({ read }, access) =>
    within(selectCampaigns(read), access).select({
      ...accountColumns,
      ...{ id: 'c.id', name: 'c.name', account_id: 'a.id', account_name: 'a.name', settings: 'c.settings' },
    }),
};
const accountColumns = { id: 'a.id', name: 'a.name', partner_id: 'p.id', partner_name: 'p.name' };

const toManaged: { readonly [Kind in DirectoryKind]: (lane: Lane, rows: CampaignRow[]) => Promise<Managed[Kind][]> } = {
  async partner(lane, rows) {
    const counts = await countBy(lane, 'accounts', 'partner_id', rows);
    return rows.map(({ id, name }) => ({ id, name, accounts: counts.get(id) ?? 0 }));
  },
  async account(lane, rows) {
    const counts = await countBy(lane, 'campaigns', 'account_id', rows);
    return rows.map((row) => ({ id: row.id, name: row.name, partner: toPartner(row), campaigns: counts.get(row.id) ?? 0 }));
  },
  campaign: async (_, rows) =>
    rows.map((row) => ({
      ...{ id: row.id, name: row.name, account: { id: row.account_id, name: row.account_name }, partner: toPartner(row) },
      settings: parseSettings(row.settings),
    })),
};

async function countBy({ read }: Lane, table: 'accounts' | 'campaigns', column: 'partner_id' | 'account_id', rows: readonly Named[]) {
  const counts = new Map<string, number>();
  for (const chunk of inChunks(rows.map(({ id }) => id))) {
    const counted: { id: string; things: number | string }[] = await read(table)
      .whereIn(column, chunk)
      .groupBy(column)
      .select({ id: column })
      .count({ things: '*' });
    for (const { id, things } of counted) counts.set(id, Number(things));
  }
  return counts;
}

function selectCampaigns(read: Knex): Knex.QueryBuilder {
  return read('campaigns as c').join('accounts as a', 'a.id', 'c.account_id').join('partners as p', 'p.id', 'a.partner_id');
}

export async function hasCampaign(read: Knex, access: CampaignAccess, id: string): Promise<boolean> {
  return (await within(selectCampaigns(read), access).where('c.id', id).first('c.id')) !== undefined;
}

/**
 * Narrows a query on partners (`p`), accounts (`a`) or campaigns (`c`) to a page, in the order of the IDs. Hides that order from the
 * planners, because they'd read all entries until a page is full, and a partner may have few of a million.
 *
 * @param alsoNamed another table whose names are searched
 */
function page(kind: Dialect, from: Knex.QueryBuilder, of: string, { search, cursor }: ListFilter, limit: number, alsoNamed?: string) {
  if (search !== '') {
    const names = [of, ...(alsoNamed === undefined ? [] : [alsoNamed])].map((table) => matching(kind, `${table}.name`, search, 'anywhere'));
    narrow(from, either(...names, equal(`${of}.id`, search)));
  }
  if (cursor !== null) from.where(`${of}.id`, '>', cursor);
  return from.orderByRaw(`${of}.id || ''`).limit(limit);
}

/** Builds the condition that a call is in one of these campaigns. */
export function isInCampaigns({ kind }: Lane, scope: CallScope): Condition {
  const [only, ...others] = scope.kind === 'campaigns' ? scope.ids : [];
  if (only !== undefined && others.length === 0) return equal('campaign_id', only);
  return oneSelected(kind, 'campaign_id', 's.id', campaignsIn(scope));
}

/** Builds the FROM and WHERE clauses that select a scope's campaigns, as `s`. */
export function campaignsIn(scope: CallScope): Condition {
  switch (scope.kind) {
    case 'campaigns': {
      const { sql, values } = oneOf('s.id', scope.ids);
      return { sql: `FROM campaigns s WHERE ${sql}`, values };
    }
    case 'account':
      return { sql: 'FROM campaigns s WHERE s.account_id = ?', values: [scope.accountId] };
    case 'partner':
      return { sql: 'FROM accounts o JOIN campaigns s ON s.account_id = o.id WHERE o.partner_id = ?', values: [scope.partnerId] };
    case 'all':
      return { sql: 'FROM campaigns s', values: [] };
    case 'nothing':
      return { sql: 'FROM campaigns s WHERE 1 = 0', values: [] };
  }
}

/** What has to be gone before a partner, account or campaign can be deleted. */
const belongings = {
  partner: [
    ['account', 'accounts', 'partner_id'],
    ['user', 'users', 'partner_id'],
    ['API key', 'api_keys', 'partner_id'],
    ['do-not-call number', 'do_not_call', 'partner_id'],
  ],
  account: [
    ['campaign', 'campaigns', 'account_id'],
    ['user', 'users', 'account_id'],
    ['API key', 'api_keys', 'account_id'],
    ['do-not-call number', 'do_not_call', 'account_id'],
  ],
  campaign: [['call', 'calls', 'campaign_id']],
} as const;

const hiddenPrefix = 'deleting-';
/** The length of a campaign's own ID, which is at the end of the other one. */
const idLength = 36;

/**
 * Deletes a campaign on PostgreSQL. Calls have no foreign key, so a statement that's placing a call may still see the campaign. First, the
 * campaign gets another ID, which hides it. It's deleted when all of those statements have ended. If one of them has placed a call, or the
 * deletion fails, the campaign gets its own ID back. If this process ends first, `restoreCampaigns` does that in the next one.
 */
async function deleteWithoutCalls(lane: Lane, id: string, event: AuditEvent): Promise<Belonging[] | null> {
  const rename = (from: string, to: string) => lane.write('campaigns').where({ id: from }).update({ id: to });
  // No other deletion uses this ID. So if the campaign was shown in the meantime, this one doesn't find it anymore.
  const now = `${hiddenPrefix}${event.id.slice(-12)}-${id}`;
  try {
    await rename(id, now);
    await requireSeen(lane, "The campaign wasn't deleted, because a call may still be placed in it. Try again shortly.");
    return await lane.write.transaction((trx) => deleteRow(trx, 'campaign', { id, now }, event));
  } finally {
    await rename(now, id).catch(() => undefined);
  }
}

/** @param row.now the ID that its row has now */
async function deleteRow(
  trx: Knex.Transaction,
  kind: DirectoryKind,
  { id, now }: { id: string; now: string },
  event: AuditEvent,
): Promise<Belonging[] | null> {
  // This lock keeps anyone from adding something else, because the foreign key of a new row waits for it.
  const row = await trx(`${kind}s`).where({ id: now }).forUpdate().first('id');
  const belonging = await findBelonging(trx, kind, id);
  if (belonging.length > 0) return belonging;
  if (row === undefined) return null;
  for (const table of ['protection_rules', 'do_not_call_sweeps', 'dialing_stops', 'dialing_paces'] as const)
    await trx(table).where({ scope_id: id }).delete();
  await trx('sessions').where({ tenancy_id: id }).update({ tenancy_kind: null, tenancy_id: null });
  await trx(`${kind}s`).where({ id: now }).delete();
  await recordAudit(trx, event);
  return [];
}

/** Counts what belongs to something, up to a hundred of each. Doesn't count calls. */
async function findBelonging(from: Knex, kind: keyof typeof belongings, id: string): Promise<Belonging[]> {
  const found: Belonging[] = [];
  for (const [noun, table, column] of belongings[kind]) {
    const rows = await from(table)
      .where(column, id)
      .limit(noun === 'call' ? 1 : countedBelongings)
      .select(column);
    if (rows.length > 0) found.push({ noun, count: noun === 'call' || rows.length === countedBelongings ? null : rows.length });
  }
  return found;
}

const countedBelongings = 100;

/** Limits a query to the viewer's access. @param query includes partners, named `p`, and accounts, named `a`, unless it's on partners */
function within(query: Knex.QueryBuilder, access: CampaignAccess): Knex.QueryBuilder {
  switch (access.kind) {
    case 'account':
      return query.where('a.id', access.accountId);
    case 'all':
      return query;
    case 'partner':
      return query.where('p.id', access.partnerId);
    case 'nothing':
      return query.whereRaw('1 = 0');
  }
}

function toPartner({ partner_id, partner_name }: TenancyRow): Named {
  return { id: partner_id, name: partner_name };
}

function toTenancy({ id, name, partner_id, partner_name }: TenancyRow): Omit<Tenancy, 'kind'> {
  return { id, name, partnerId: partner_id, partnerName: partner_name };
}

function narrow(query: Knex.QueryBuilder, { sql, values }: Condition): void {
  query.whereRaw(sql, values);
}

const ranks = ['whole', 'start', 'word'] as const;

/** This many accounts of each partner come before more of one. Otherwise, a partner with hundreds of accounts would hide all others. */
const fewOfPartner = 3;
type Match = TenancyRow & { nth: number | string; match_rank: number };

/**
 * Finds the best matches: exact matches come first, then names that start with the text, names with another word that starts with it, and
 * other matches. A few of each partner come before more of one.
 *
 * @param tenancies a query on a table named `t`
 */
async function bestMatches(
  { kind, read }: Lane,
  tenancies: Knex.QueryBuilder,
  partnerColumn: string,
  text: string,
  limit: number,
): Promise<Match[]> {
  const sought = text.trim();
  const cases = sought === '' ? [] : ranks.map((rank) => matching(kind, 't.name', sought, rank));
  const whens = cases.map(({ sql }, rank) => `WHEN ${sql} THEN ${rank}`).join(' ');
  const rank = whens === '' ? '0' : `CASE ${whens} ELSE ${ranks.length} END`;
  const values = cases.flatMap((each) => each.values);
  if (sought !== '') narrow(tenancies, matching(kind, 't.name', sought, 'anywhere'));
  const ranked = tenancies.select(read.raw(`${rank} AS match_rank`, values), { owner: partnerColumn });
  const numbered = read
    .from(ranked.as('ranked'))
    .select('*', read.raw(`row_number() OVER (PARTITION BY owner ORDER BY match_rank, name, id) AS nth`));
  return read
    .from(numbered.as('numbered'))
    .select('id', 'name', 'partner_id', 'partner_name', 'nth', 'match_rank')
    .orderByRaw(`CASE WHEN nth <= ${fewOfPartner} THEN 0 ELSE 1 END, match_rank, name, id`)
    .limit(limit);
}

/** Sorts a short list in the order of {@link bestMatches}. Sorts numbers in names by value, and ignores case and accents. */
function sortByMatch<Item extends Match>(items: Item[]): Item[] {
  const order = new Intl.Collator('en', { sensitivity: 'base', numeric: true });
  const isMore = ({ nth }: Item) => Number(Number(nth) > fewOfPartner);
  return items.toSorted((a, b) => isMore(a) - isMore(b) || a.match_rank - b.match_rank || order.compare(a.name, b.name));
}
