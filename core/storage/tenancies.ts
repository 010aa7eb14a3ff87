import type { Knex } from 'knex';
import type { Named } from '#contract/console.ts';
import { folded } from '#contract/text.ts';
import type { ExternalNamed } from '../domain/model.ts';
import type { TenancyStore } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import type { CampaignAccess } from '../domain/scope.ts';
import { recordAudit } from './audit.ts';
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
        await recordAudit(trx, event);
      });
    },

    async createAccount({ id, name, partnerId }, event) {
      const creating = write.transaction(async (trx) => {
        await trx('accounts').insert({ id, name, partner_id: partnerId, created_at: event.at.toMillis() });
        await recordAudit(trx, event);
      });
      await creating.catch(noSuch('partner', partnerId));
    },

    async createCampaign({ id, name, accountId }, event) {
      const creating = write.transaction(async (trx) => {
        await trx('campaigns').insert({ id, name, account_id: accountId, created_at: event.at.toMillis() });
        await recordAudit(trx, event);
      });
      await creating.catch(noSuch('account', accountId));
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

    async listAccounts(access) {
      const accounts: Named[] = await within(read('accounts as a'), access).select('a.id', 'a.name').orderBy('a.name').orderBy('a.id');
      return accounts.map(({ id, name }) => ({ id, name }));
    },

    async listCampaigns(access) {
      const rows: (Named & { account_id: string; account_name: string })[] = await campaignsOf(read, access)
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

type ExternalRow = Named & { external_id: string | null };

function externalNamed({ id, name, external_id }: ExternalRow): ExternalNamed {
  return { id, name, externalId: external_id };
}

/** Campaigns, named `c`, with their accounts, named `a`. */
export function campaignsOf(read: Knex, access: CampaignAccess): Knex.QueryBuilder {
  return within(read('campaigns as c').join('accounts as a', 'a.id', 'c.account_id'), access);
}

/** @param query that has accounts in it, named `a` */
function within(query: Knex.QueryBuilder, access: CampaignAccess): Knex.QueryBuilder {
  switch (access.kind) {
    case 'account':
      return query.where('a.id', access.accountId);
    case 'partner':
      return query.where('a.partner_id', access.partnerId);
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
 * Ranks equal names before beginnings of names, beginnings of words, and other matches. Ignores case and accents. Not in SQL, since neither
 * database ignores accents by default; there are only thousands of tenancies.
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
