import type { Named } from '#contract/console/common.ts';
import type { DirectoryAccountsView, DirectoryCampaignsView, DirectoryPartnersView } from '#contract/console/directory.ts';
import { foldText } from '#contract/text/text.ts';
import type { Result } from '../../ipc.ts';
import { oneOf, text, viewFields } from './filters.ts';
import { mapped, type Pages } from './list.ts';

export type DirectoryKind = 'partner' | 'account' | 'campaign';
/** A partner, account or campaign. `count` is the number of its accounts or campaigns; null for a campaign. */
export type DirectoryEntry = Named & { kind: DirectoryKind; partner: Named | null; account: Named | null; count: number | null };
type DirectoryPage = { entries: DirectoryEntry[]; nextCursor: string | null };

/**
 * The user's settings in the directory.
 *
 * @property kind empty for the first kind that the viewer sees
 * @property parent the ID of the partner or account whose accounts or campaigns are shown; empty for all
 * @property open the ID of the entry whose details are shown
 */
export type DirectoryView = { kind: DirectoryKind | ''; parent: string; search: string; open: string };

export const directoryView = viewFields<DirectoryView>('directory', ['kind', 'open'], {
  kind: oneOf(['partner', 'account', 'campaign', ''], ''),
  open: text(),
  parent: text(),
  search: text(),
});

export const kindLabels: Readonly<Record<DirectoryKind, { singular: string; plural: string; noun: string }>> = {
  partner: { singular: 'Partner', plural: 'Partners', noun: 'partner' },
  account: { singular: 'Account', plural: 'Accounts', noun: 'account' },
  campaign: { singular: 'Campaign', plural: 'Campaigns', noun: 'campaign' },
};

/** The kind of entries that an entry contains. */
export const childKinds: Readonly<Record<DirectoryKind, DirectoryKind | null>> = {
  partner: 'account',
  account: 'campaign',
  campaign: null,
};

function partnerEntry({ id, name, accounts }: DirectoryPartnersView['partners'][number]): DirectoryEntry {
  return { kind: 'partner', id, name, partner: null, account: null, count: accounts };
}

function accountEntry({ id, name, partner, campaigns }: DirectoryAccountsView['accounts'][number]): DirectoryEntry {
  return { kind: 'account', id, name, partner, account: null, count: campaigns };
}

function campaignEntry({ id, name, partner, account }: DirectoryCampaignsView['campaigns'][number]): DirectoryEntry {
  return { kind: 'campaign', id, name, partner, account, count: null };
}

type Requests = {
  /** @param parentId the partner whose accounts are listed, or the account whose campaigns are listed; null for all */
  list(parentId: string | null, page: { search: string; cursor: string | null }): Promise<Result<DirectoryPage>>;
  /** @param parentId its partner or account; empty for a partner */
  create(name: string, parentId: string): Promise<Result<DirectoryEntry>>;
  rename(id: string, name: string): Promise<Result<DirectoryEntry>>;
  delete(id: string): Promise<Result<null>>;
};

export const requests: Readonly<Record<DirectoryKind, Requests>> = {
  partner: {
    list: (_, page) =>
      mapped(window.callkey.request('listDirectoryPartners', page), ({ partners, nextCursor }) => ({
        entries: partners.map(partnerEntry),
        nextCursor,
      })),
    create: (name) => mapped(window.callkey.request('createPartner', { name }), ({ partner }) => partnerEntry(partner)),
    rename: (id, name) => mapped(window.callkey.request('renamePartner', { id, name }), ({ partner }) => partnerEntry(partner)),
    delete: (id) => window.callkey.request('deletePartner', { id }),
  },
  account: {
    list: (partner, page) =>
      mapped(window.callkey.request('listDirectoryAccounts', { partner, ...page }), ({ accounts, nextCursor }) => ({
        entries: accounts.map(accountEntry),
        nextCursor,
      })),
    create: (name, partnerId) =>
      mapped(window.callkey.request('createAccount', { name, partnerId }), ({ account }) => accountEntry(account)),
    rename: (id, name) => mapped(window.callkey.request('renameAccount', { id, name }), ({ account }) => accountEntry(account)),
    delete: (id) => window.callkey.request('deleteAccount', { id }),
  },
  campaign: {
    list: (account, page) =>
      mapped(window.callkey.request('listDirectoryCampaigns', { account, ...page }), ({ campaigns, nextCursor }) => ({
        entries: campaigns.map(campaignEntry),
        nextCursor,
      })),
    create: (name, accountId) =>
      mapped(window.callkey.request('createCampaign', { name, accountId }), ({ campaign }) => campaignEntry(campaign)),
    rename: (id, name) => mapped(window.callkey.request('renameCampaign', { id, name }), ({ campaign }) => campaignEntry(campaign)),
    delete: (id) => window.callkey.request('deleteCampaign', { id }),
  },
};

/** The kind of entry that contains an entry. */
export const parentKinds: Readonly<Record<DirectoryKind, DirectoryKind | null>> = {
  partner: null,
  account: 'partner',
  campaign: 'account',
};

export function directoryPages(kind: DirectoryKind, parent: string, search: string): Pages<DirectoryPage> {
  return {
    load: (cursor) => requests[kind].list(parent === '' ? null : parent, { search, cursor }),
    join: (view, next) => ({ entries: [...view.entries, ...next.entries], nextCursor: next.nextCursor }),
    count: ({ entries }) => entries.length,
    empty: { entries: [], nextCursor: null },
  };
}

/** Returns the entries that match the search by name or ID, the same ones that the core would find. */
export function entriesInView(entries: readonly DirectoryEntry[], search: string): DirectoryEntry[] {
  const query = search.trim();
  return entries.filter(({ id, name }) => foldText(name).includes(foldText(query)) || id === query);
}
