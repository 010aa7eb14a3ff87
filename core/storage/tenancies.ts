import type { Knex } from 'knex';
import type { Named } from '#contract/console.ts';
import { folded } from '#contract/text.ts';
import type { TenancyStore } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import type { CampaignAccess } from '../domain/tenancy.ts';
import { record } from './audit.ts';
import type { Database } from './database.ts';
import { isForeignKeyViolation } from './errors.ts';

export function tenancyStore({ read, write }: Database): TenancyStore {
  return {
    async findPartner(id) {
      const [partner]: Named[] = await read('partners').select('id', 'name').where({ id });
      return partner ?? null;
    },

    async findAccount(id) {
      const [account]: (Named & { partner_id: string })[] = await read('accounts').select('id', 'name', 'partner_id').where({ id });
      return account ? { id, name: account.name, partnerId: account.partner_id } : null;
    },

    async createPartner({ id, name }, event) {
      await write.transaction(async (trx) => {
        await trx('partners').insert({ id, name, created_at: event.at.toMillis() });
        await record(trx, event);
      });
    },

    async createAccount({ id, name, partnerId }, event) {
      const adding = write.transaction(async (trx) => {
        await trx('accounts').insert({ id, name, partner_id: partnerId, created_at: event.at.toMillis() });
        await record(trx, event);
      });
      await adding.catch(noSuch('partner', partnerId));
    },

    async createCampaign({ id, name, accountId }, event) {
      const adding = write.transaction(async (trx) => {
        await trx('campaigns').insert({ id, name, account_id: accountId, created_at: event.at.toMillis() });
        await record(trx, event);
      });
      await adding.catch(noSuch('account', accountId));
    },

    async listAccounts(reach) {
      const accounts: Named[] = await within(read('accounts as a'), reach).select('a.id', 'a.name').orderBy('a.name').orderBy('a.id');
      return accounts.map(({ id, name }) => ({ id, name }));
    },

    async listCampaigns(reach) {
      const rows: (Named & { account_id: string; account_name: string })[] = await campaignsOf(read, reach)
        .select('c.id', 'c.name', 'c.account_id', 'a.name as account_name')
        .orderBy('a.name')
        .orderBy('c.name')
        .orderBy('c.id');
      return rows.map((row) => ({ id: row.id, name: row.name, account: { id: row.account_id, name: row.account_name } }));
    },

    async search(text, limit) {
      const [partners, accounts]: [Named[], (Named & { partner_id: string; partner_name: string })[]] = await Promise.all([
        read('partners').select('id', 'name'),
        read('accounts as a')
          .join('partners as p', 'p.id', 'a.partner_id')
          .select('a.id', 'a.name', 'a.partner_id', 'p.name as partner_name'),
      ]);
      const all = [
        ...partners.map(({ id, name }) => ({ kind: 'partner' as const, id, name, partnerId: id, partnerName: null })),
        ...accounts.map((row) => ({
          kind: 'account' as const,
          id: row.id,
          name: row.name,
          partnerId: row.partner_id,
          partnerName: row.partner_name,
        })),
      ];
      return bestMatches(all, text).slice(0, limit);
    },
  };
}

/** The campaigns within a reach, named `c`, with their accounts, named `a`. */
export function campaignsOf(read: Knex, reach: CampaignAccess): Knex.QueryBuilder {
  return within(read('campaigns as c').join('accounts as a', 'a.id', 'c.account_id'), reach);
}

/** @param query that has accounts in it, named `a` */
function within(query: Knex.QueryBuilder, reach: CampaignAccess): Knex.QueryBuilder {
  switch (reach.kind) {
    case 'account':
      return query.where('a.id', reach.accountId);
    case 'partner':
      return query.where('a.partner_id', reach.partnerId);
    case 'nothing':
      return query.whereRaw('1 = 0');
  }
}

function noSuch(kind: 'partner' | 'account', id: string) {
  return (error: unknown): never => {
    throw isForeignKeyViolation(error) ? new Problem('not-found', `There is no ${kind} ${id}.`) : error;
  };
}

/**
 * Whole names before beginnings of names, before beginnings of words, before anything within; case and accents do not count.
 * Neither database folds accents of its own accord, and there are thousands of tenancies at the most: they are compared here.
 */
function bestMatches<Item extends { name: string }>(items: Item[], text: string): Item[] {
  const wanted = folded(text.trim());
  const rank = (name: string) => {
    const text = folded(name);
    if (text === wanted) return 0;
    if (text.startsWith(wanted)) return 1;
    if (text.includes(` ${wanted}`)) return 2;
    return text.includes(wanted) ? 3 : 4;
  };
  const order = new Intl.Collator('en', { sensitivity: 'base', numeric: true });
  return items
    .map((item) => ({ item, rank: rank(item.name) }))
    .filter(({ rank }) => rank < 4)
    .toSorted((one, other) => one.rank - other.rank || order.compare(one.item.name, other.item.name))
    .map(({ item }) => item);
}
