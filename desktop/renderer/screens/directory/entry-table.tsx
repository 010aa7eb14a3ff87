import { Clip } from '../../components/table/clip.tsx';
import { DataTable } from '../../components/table/data-table.tsx';
import type { Column } from '../../components/table/table-model.ts';
import { formatAddress } from '../../state/address/addresses.ts';
import { type DirectoryEntry, type DirectoryKind, kindLabels } from '../../state/directory.ts';
import { formatNumber } from '../../state/format/format.ts';

type EntryTableProps = {
  kind: DirectoryKind;
  entries: readonly DirectoryEntry[];
  openId: string;
  onOpen: (entry: DirectoryEntry) => void;
};

/** Shows entries of one kind, each with the entries that contain it, because two accounts may have the same name. */
export function EntryTable({ kind, entries, openId, onOpen }: EntryTableProps) {
  return (
    <DataTable
      label={kindLabels[kind].plural}
      columns={columns[kind]}
      rows={entries}
      getId={({ id }) => id}
      getName={({ name }) => name}
      openId={openId}
      getHref={({ id }) => formatAddress('directory', { kind, open: id })}
      onOpen={onOpen}
    />
  );
}

type EntryColumn = Column<DirectoryEntry, 'name' | 'account' | 'partner' | 'count'>;

const name: EntryColumn = { name: 'name', label: 'Name', width: 'name', cell: (entry) => <Clip>{entry.name}</Clip> };
const partner: EntryColumn = { name: 'partner', label: 'Partner', width: 'text', cell: (entry) => <Clip>{entry.partner?.name}</Clip> };
const account: EntryColumn = { name: 'account', label: 'Account', width: 'text', cell: (entry) => <Clip>{entry.account?.name}</Clip> };
const count = (label: string): EntryColumn => ({
  name: 'count',
  label,
  width: 'count',
  cell: (entry) => formatNumber(entry.count ?? 0),
});

const columns: Readonly<Record<DirectoryKind, EntryColumn[]>> = {
  partner: [name, count('Accounts')],
  account: [name, partner, count('Campaigns')],
  campaign: [name, account, partner],
};
