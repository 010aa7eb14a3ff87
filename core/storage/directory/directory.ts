import type { Knex } from 'knex';
import type { Named } from '#contract/console/common.ts';
import type { DirectoryAccess } from '../../domain/directory/scope.ts';
import type { ListFilter } from '../../domain/model.ts';
import type { Belonging, DirectoryStore } from '../../domain/ports.ts';
import { recordAudit, recordAudits } from '../audit/audit.ts';
import { inChunks } from '../engine/chunks.ts';
import { either, equal, matching } from '../engine/conditions.ts';
import type { Lane, Lanes } from '../engine/database.ts';

type AccountRow = Named & { partner_id: string; partner_name: string };
type CampaignRow = AccountRow & { account_id: string; account_name: string };

/** The directory's tables and the order of their lists. Partners are named `p`, accounts `a`, and campaigns `c`. */
const orders = {
  partners: { name: 'p.name', id: 'p.id', order: ['p.name', 'p.id'] },
  accounts: { name: 'a.name', id: 'a.id', order: ['p.name', 'a.name', 'a.id'] },
  campaigns: { name: 'c.name', id: 'c.id', order: ['p.name', 'a.name', 'c.name', 'c.id'] },
} as const;

export function directoryStore({ console, lists }: Lanes): DirectoryStore {
  const { kind, write } = console;
  const partners = ({ read }: Lane, access: DirectoryAccess) => within(read('partners as p'), access);
  const accounts = ({ read }: Lane, access: DirectoryAccess) =>
    within(read('accounts as a').join('partners as p', 'p.id', 'a.partner_id'), access);
  const campaigns = ({ read }: Lane, access: DirectoryAccess) => {
    const all = read('campaigns as c').join('accounts as a', 'a.id', 'c.account_id').join('partners as p', 'p.id', 'a.partner_id');
    return within(all, access);
  };

  /** Queries a page. @param from creates the query; it's also called to find the cursor's position */
  function page(table: keyof typeof orders, from: () => Knex.QueryBuilder, { search, cursor }: ListFilter, limit: number) {
    const { name, id, order } = orders[table];
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

  async function withAccounts(lane: Lane, rows: Named[]) {
    const counts = await countBy(lane, 'accounts', 'partner_id', rows);
    return rows.map(({ id, name }) => ({ id, name, accounts: counts.get(id) ?? 0 }));
  }

  async function withCampaigns(lane: Lane, rows: AccountRow[]) {
    const counts = await countBy(lane, 'campaigns', 'account_id', rows);
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

    async delete(kind, id, event) {
      const before = await findBelonging(console.read, kind, id);
      if (before.length > 0) return before;
      // Calls have no foreign key, and a statement that's placing one may still see the campaign. So it first gets another ID, and once no
      // such statement runs anymore, gets its own back if it has a call now.
      const current = kind === 'campaign' ? `deleting-${id}` : id;
      if (kind === 'campaign') {
        await write('campaigns').where({ id }).update({ id: current });
        await console.awaitWriters();
      }
      return write.transaction(async (trx) => {
        // This lock keeps anyone from adding something else, because the foreign key of a new row waits for it.
        const row = await trx(`${kind}s`).where({ id: current }).forUpdate().first('id');
        const belonging = await findBelonging(trx, kind, id);
        await trx(`${kind}s`)
          .where({ id: current })
          .update({ id: belonging.length > 0 ? id : current });
        if (belonging.length > 0) return belonging;
        if (row === undefined) return null;
        await trx('protection_rules').where({ scope_id: id }).delete();
        await trx('do_not_call_sweeps').where({ scope_id: id }).delete();
        await trx('sessions').where({ tenancy_id: id }).update({ tenancy_kind: null, tenancy_id: null });
        await trx(`${kind}s`).where({ id: current }).delete();
        await recordAudit(trx, event);
        return [];
      });
    },

    async partners(access, filter, limit) {
      return withAccounts(lists, await page('partners', () => partners(lists, access), filter, limit).select(partnerColumns));
    },

    async accounts(access, partnerId, filter, limit) {
      const from = () => (partnerId === null ? accounts(lists, access) : accounts(lists, access).where('p.id', partnerId));
      return withCampaigns(lists, await page('accounts', from, filter, limit).select(accountColumns));
    },

    async campaigns(access, accountId, filter, limit) {
      const from = () => (accountId === null ? campaigns(lists, access) : campaigns(lists, access).where('a.id', accountId));
      const rows: CampaignRow[] = await page('campaigns', from, filter, limit).select(campaignColumns);
      return rows.map(toCampaign);
    },

    async findPartner(access, id) {
      const [partner] = await withAccounts(console, await partners(console, access).where('p.id', id).select(partnerColumns));
      return partner ?? null;
    },

    async findAccount(access, id) {
      const [account] = await withCampaigns(console, await accounts(console, access).where('a.id', id).select(accountColumns));
      return account ?? null;
    },

    async findCampaign(access, id) {
      const [campaign]: CampaignRow[] = await campaigns(console, access).where('c.id', id).select(campaignColumns);
      return campaign ? toCampaign(campaign) : null;
    },
  };
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
