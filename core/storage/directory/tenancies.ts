import type { Knex } from 'knex';
import type { Named } from '#contract/console/common.ts';
import { foldText } from '#contract/text/text.ts';
import type { CampaignAccess } from '../../domain/directory/scope.ts';
import type { ExternalNamed, Tenancy } from '../../domain/model.ts';
import type { TenancyStore } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';
import { recordAudit } from '../audit/audit.ts';
import { type Condition, either, equal, matching } from '../engine/conditions.ts';
import type { Lane, Lanes } from '../engine/database.ts';
import { isForeignKeyViolation } from '../engine/errors.ts';

export function tenancyStore({ console: { read, write, kind }, lists }: Lanes): TenancyStore {
  return {
    async findPartner(id) {
      const [partner]: Named[] = await read('partners').select('id', 'name').where({ id });
      return partner ?? null;
    },

    async findAccount(id) {
      const [account]: (Named & { partner_id: string })[] = await read('accounts').select('id', 'name', 'partner_id').where({ id });
      return account ? { id, name: account.name, partnerId: account.partner_id } : null;
    },

    async findTenancy({ kind, id }) {
      const columns = { id: 't.id', name: 't.name', partner_id: 'p.id', partner_name: 'p.name' };
      const from =
        kind === 'partner'
          ? read('partners as t').join('partners as p', 'p.id', 't.id')
          : read('accounts as t').join('partners as p', 'p.id', 't.partner_id');
      const [row]: TenancyRow[] = await from.select(columns).where('t.id', id);
      return row ? { kind, ...toTenancy(row) } : null;
    },

    async createPartner({ id, name }, event) {
      await write.transaction(async (trx) => {
        await trx('partners').insert({ id, name, created_at: event.at });
        await recordAudit(trx, event);
      });
    },

    async createAccount({ id, name, partnerId }, event) {
      const creating = write.transaction(async (trx) => {
        await trx('accounts').insert({ id, name, partner_id: partnerId, created_at: event.at });
        await recordAudit(trx, event);
      });
      await creating.catch(notFound('partner', partnerId));
    },

    async createCampaign({ id, name, accountId }, event) {
      const creating = write.transaction(async (trx) => {
        await trx('campaigns').insert({ id, name, account_id: accountId, created_at: event.at });
        await recordAudit(trx, event);
      });
      await creating.catch(notFound('account', accountId));
    },

    async allPartners() {
      const rows: ExternalRow[] = await read('partners').select('id', 'name', 'external_id').orderBy('name').orderBy('id');
      return rows.map(externalNamed);
    },

    async allAccounts() {
      const rows: (ExternalRow & { partner_id: string; partner_name: string })[] = await read('accounts as a')
        .join('partners as p', 'p.id', 'a.partner_id')
        .select('a.id', 'a.name', 'a.external_id', 'a.partner_id', 'p.name as partner_name')
        .orderBy(['p.name', 'a.name', 'a.id']);
      return rows.map((row) => ({ ...externalNamed(row), partner: { id: row.partner_id, name: row.partner_name } }));
    },

    async allCampaigns() {
      const rows: (ExternalRow & { account_id: string; account_name: string })[] = await read('campaigns as c')
        .join('accounts as a', 'a.id', 'c.account_id')
        .select('c.id', 'c.name', 'c.external_id', 'c.account_id', 'a.name as account_name')
        .orderBy(['a.name', 'c.name', 'c.id']);
      return rows.map((row) => ({ ...externalNamed(row), account: { id: row.account_id, name: row.account_name } }));
    },

    async listAccounts(access, { search, cursor }, limit) {
      const accounts = within(lists.read('accounts as a'), access).select('a.id', 'a.name').orderBy(['a.name', 'a.id']).limit(limit);
      if (search !== '') narrow(accounts, either(matching(kind, 'a.name', search, 'anywhere'), equal('a.id', search)));
      if (cursor !== null) {
        const last = within(lists.read('accounts as a'), access).where('a.id', cursor).select('a.name', 'a.id');
        accounts.whereRaw('(a.name, a.id) > ?', [last]);
      }
      const rows: Named[] = await accounts;
      return rows.map(({ id, name }) => ({ id, name }));
    },

    async listCampaigns(access, { search, cursor }, limit) {
      const order = ['a.name', 'c.name', 'c.id'];
      const campaigns = selectCampaigns(lists.read, access).select('c.id', 'c.name', 'c.account_id', 'a.name as account_name');
      campaigns.orderBy(order).limit(limit);
      if (search !== '') {
        const names = ['c.name', 'a.name'].map((column) => matching(kind, column, search, 'anywhere'));
        narrow(campaigns, either(...names, equal('c.id', search)));
      }
      if (cursor !== null) campaigns.whereRaw(`(${order}) > ?`, [selectCampaigns(lists.read, access).where('c.id', cursor).select(order)]);
      const rows: (Named & { account_id: string; account_name: string })[] = await campaigns;
      return rows.map((row) => ({ id: row.id, name: row.name, account: { id: row.account_id, name: row.account_name } }));
    },

    async search(text, limit) {
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
      return sortByMatch(all, text)
        .slice(0, limit)
        .map(({ kind, ...row }) => ({ kind, ...toTenancy(row) }));
    },
  };
}

type TenancyRow = Named & { partner_id: string; partner_name: string };

function toTenancy({ id, name, partner_id, partner_name }: TenancyRow): Omit<Tenancy, 'kind'> {
  return { id, name, partnerId: partner_id, partnerName: partner_name };
}

type ExternalRow = Named & { external_id: string | null };

function externalNamed({ id, name, external_id }: ExternalRow): ExternalNamed {
  return { id, name, externalId: external_id };
}

/** Queries campaigns, named `c`, with their accounts, named `a`. */
export function selectCampaigns(read: Knex, access: CampaignAccess): Knex.QueryBuilder {
  return within(read('campaigns as c').join('accounts as a', 'a.id', 'c.account_id'), access);
}

/** Limits a query to the viewer's access. @param query includes accounts, named `a` */
function within(query: Knex.QueryBuilder, access: CampaignAccess): Knex.QueryBuilder {
  switch (access.kind) {
    case 'account':
      return query.where('a.id', access.accountId);
    case 'partner':
      return query.where('a.partner_id', access.partnerId);
    case 'all':
      return query;
    case 'nothing':
      return query.whereRaw('1 = 0');
  }
}

function notFound(kind: 'partner' | 'account', id: string) {
  return (error: unknown): never => {
    throw isForeignKeyViolation(error) ? new Problem('not-found', `The ${kind} ${id} doesn't exist.`) : error;
  };
}

function narrow(query: Knex.QueryBuilder, { sql, values }: Condition): void {
  query.whereRaw(sql, values);
}

const ranks = ['whole', 'start', 'word'] as const;

/** This many accounts of each partner come before more of one. Otherwise, a partner with hundreds of accounts would hide all others. */
const fewOfPartner = 3;
type Match = TenancyRow & { nth: number | string };

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
    .select('id', 'name', 'partner_id', 'partner_name', 'nth')
    .orderByRaw(`CASE WHEN nth <= ${fewOfPartner} THEN 0 ELSE 1 END, match_rank, name, id`)
    .limit(limit);
}

/** Sorts a short list in the order of {@link bestMatches}. Sorts numbers in names by value, and ignores case and accents. */
function sortByMatch<Item extends { name: string; nth: number | string }>(items: Item[], text: string): Item[] {
  const sought = foldText(text.trim());
  const rank = (name: string) => {
    const text = foldText(name);
    if (text === sought) return 0;
    if (text.startsWith(sought)) return 1;
    return text.includes(` ${sought}`) ? 2 : 3;
  };
  const order = new Intl.Collator('en', { sensitivity: 'base', numeric: true });
  return items
    .map((item) => ({ item, isMore: Number(item.nth) > fewOfPartner, rank: rank(item.name) }))
    .toSorted((a, b) => Number(a.isMore) - Number(b.isMore) || a.rank - b.rank || order.compare(a.item.name, b.item.name))
    .map(({ item }) => item);
}
