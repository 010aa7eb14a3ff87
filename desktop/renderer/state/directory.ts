import { folded } from '#contract/text/text.ts';
import type { DirectoryEntry, DirectoryKind, DirectoryPage } from '../../ipc.ts';
import type { Pages } from './pages.ts';

/** The user's settings in the directory. @property parent the partner or account whose accounts or campaigns are shown; null for all */
export type DirectoryView = { kind: DirectoryKind; parent: DirectoryEntry | null; search: string };

export const kindLabels: Readonly<Record<DirectoryKind, { one: string; many: string; few: string }>> = {
  partner: { one: 'Partner', many: 'Partners', few: 'partner' },
  account: { one: 'Account', many: 'Accounts', few: 'account' },
  campaign: { one: 'Campaign', many: 'Campaigns', few: 'campaign' },
};

/** What an entry contains. */
export const childKinds: Readonly<Record<DirectoryKind, DirectoryKind | null>> = {
  partner: 'account',
  account: 'campaign',
  campaign: null,
};

export function directoryPages({ kind, parent }: DirectoryView, search: string): Pages<DirectoryPage> {
  return {
    load: (cursor) => window.callkey.listDirectory({ kind, parentId: parent?.id ?? null, search, cursor }),
    join: (view, next) => ({ entries: [...view.entries, ...next.entries], nextCursor: next.nextCursor }),
    count: ({ entries }) => entries.length,
    empty: { entries: [], nextCursor: null },
  };
}

/** The entries that match the search by name or ID, as the core would find them. */
export function entriesInView(entries: readonly DirectoryEntry[], search: string): DirectoryEntry[] {
  const text = search.trim();
  return entries.filter(({ id, name }) => folded(name).includes(folded(text)) || id === text);
}
