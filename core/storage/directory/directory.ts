import type { Knex } from 'knex';
import type { Named } from '#contract/console/common.ts';
import type { DirectoryAccess } from '../../domain/directory/scope.ts';
import type { ListFilter } from '../../domain/model.ts';
import type { DirectoryStore } from '../../domain/ports/directory.ts';
import { recordAudit, recordAudits } from '../audit/audit.ts';
import { either, equal, matching } from '../calls/lists/text-search.ts';
import { inChunks } from '../engine/chunks.ts';
import type { Database } from '../engine/database.ts';

type AccountRow = Named & { partner_id: string; partner_name: string };
type CampaignRow = AccountRow & { account_id: string; account_name: string };

/** The directory's tables and the order of their lists. Partners are named `p`, accounts `a`, and campaigns `c`. */
const lists = {
  partners: { name: 'p.name', id: 'p.id', order: ['p.name', 'p.id'] },
  accounts: { name: 'a.name', id: 'a.id', order: ['p.name', 'a.name', 'a.id'] },
  campaigns: { name: 'c.name', id: 'c.id', order: ['p.name', 'a.name', 'c.name', 'c.id'] },
} as const;

export function directoryStore({ kind, read, write }: Database): DirectoryStore {
  const partners = (access: DirectoryAccess) => within(read('partners as p'), access);
  const accounts = (access: DirectoryAccess) => within(read('accounts as a').join('partners as p', 'p.id', 'a.partner_id'), access);
  const campaigns = (access: DirectoryAccess) => {
    const all = read('campaigns as c').join('accounts as a', 'a.id', 'c.account_id').join('partners as p', 'p.id', 'a.partner_id');
    return within(all, access);
  };

  /** Queries a page. @param from creates the query; it's also called to find the cursor's position */
  function page(table: keyof typeof lists, from: () => Knex.QueryBuilder, { search, cursor }: ListFilter, limit: number) {
    const { name, id, order } = lists[table];
    const rows = from()
      .orderBy([...order])
      .limit(limit);
    if (search !== '') {
      const { sql, values } = either(matching(kind, name, search, 'anywhere'), equal(id, search));
      rows.whereRaw(sql, values);
    }
    if (cursor !== null) rows.whereRaw(`(${order}) > ?`, [from().where(id, cursor).select(order)]);
    return rows;
  }

  /** Counts the accounts of each of these partners, or the campaigns of each of these accounts. */
  async function countBy(table: 'accounts' | 'campaigns', column: 'partner_id' | 'account_id', rows: readonly Named[]) {
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

  async function withAccounts(rows: Named[]) {
    const counts = await countBy('accounts', 'partner_id', rows);
    return rows.map(({ id, name }) => ({ id, name, accounts: counts.get(id) ?? 0 }));
  }

  async function withCampaigns(rows: AccountRow[]) {
    const counts = await countBy('campaigns', 'account_id', rows);
    return rows.map((row) => ({ id: row.id, name: row.name, partner: toPartner(row), campaigns: counts.get(row.id) ?? 0 }));
  }

  return {
    setUp(partner, account, campaign, events) {
      return write.transaction(async (trx) => {
        // Without this lock, two cores on PostgreSQL could both create the first partner. SQLite has only one writer.
        if (kind === 'postgres') await trx.raw('LOCK TABLE partners IN SHARE ROW EXCLUSIVE MODE');
        if ((await trx('partners').first('id')) !== undefined) return false;
        const createdAt = events[0].at;
        await trx('partners').insert({ id: partner.id, name: partner.name, created_at: createdAt });
        await trx('accounts').insert({ id: account.id, name: account.name, partner_id: account.partnerId, created_at: createdAt });
        await trx('campaigns').insert({ id: campaign.id, name: campaign.name, account_id: campaign.accountId, created_at: createdAt });
        await recordAudits(trx, events);
        return true;
      });
    },

    rename(kind, { id, name }, event) {
      return write.transaction(async (trx) => {
        const renamed = await trx<Named>(`${kind}s`).where({ id }).update({ name });
        if (renamed > 0) await recordAudit(trx, event);
        return renamed > 0;
      });
    },

    async partners(access, filter, limit) {
      return withAccounts(await page('partners', () => partners(access), filter, limit).select(partnerColumns));
    },

    async accounts(access, partnerId, filter, limit) {
      const from = () => (partnerId === null ? accounts(access) : accounts(access).where('p.id', partnerId));
      return withCampaigns(await page('accounts', from, filter, limit).select(accountColumns));
    },

    async campaigns(access, accountId, filter, limit) {
      const from = () => (accountId === null ? campaigns(access) : campaigns(access).where('a.id', accountId));
      const rows: CampaignRow[] = await page('campaigns', from, filter, limit).select(campaignColumns);
      return rows.map(toCampaign);
    },

    async findPartner(access, id) {
      const [partner] = await withAccounts(await partners(access).where('p.id', id).select(partnerColumns));
      return partner ?? null;
    },

    async findAccount(access, id) {
      const [account] = await withCampaigns(await accounts(access).where('a.id', id).select(accountColumns));
      return account ?? null;
    },

    async findCampaign(access, id) {
      const [campaign]: CampaignRow[] = await campaigns(access).where('c.id', id).select(campaignColumns);
      return campaign ? toCampaign(campaign) : null;
    },
  };
}

const partnerColumns = { id: 'p.id', name: 'p.name' };
const accountColumns = { id: 'a.id', name: 'a.name', partner_id: 'p.id', partner_name: 'p.name' };
const campaignColumns = { ...accountColumns, id: 'c.id', name: 'c.name', account_id: 'a.id', account_name: 'a.name' };

/** Limits a query to the viewer's access. @param query includes partners, named `p` */
function within(query: Knex.QueryBuilder, access: DirectoryAccess): Knex.QueryBuilder {
  switch (access.kind) {
    case 'all':
      return query;
    case 'partner':
      return query.where('p.id', access.partnerId);
    case 'nothing':
      return query.whereRaw('1 = 0');
  }
}

function toCampaign(row: CampaignRow) {
  return { id: row.id, name: row.name, account: { id: row.account_id, name: row.account_name }, partner: toPartner(row) };
}

function toPartner({ partner_id, partner_name }: AccountRow): Named {
  return { id: partner_id, name: partner_name };
}
