import { useMemo } from 'preact/hooks';
import type { ApiKeyView } from '#contract/console/api-keys.ts';
import { Clip } from '../../../components/table/clip.tsx';
import { DataTable } from '../../../components/table/data-table.tsx';
import type { Column, Selection } from '../../../components/table/table-model.ts';
import { Day, ExpiryDay, toExpiry } from '../../../components/time.tsx';
import { formatAddress } from '../../../state/address/addresses.ts';
import { now } from '../../../state/clock.ts';
import { formatRelative } from '../../../state/format/format-time.ts';
import { capitalized } from '../../../state/format/labels.ts';
import type { Sort } from '../../../state/format/sorting.ts';
import { summarizeLimits } from '../key-limits.ts';
import { getOwnerId, hasExpired, isExpiringSoon, type KeyColumn } from './key-list.ts';

type ApiKeyTableProps = {
  apiKeys: readonly ApiKeyView[];
  /** The owners' names by owner ID. */
  owners: ReadonlyMap<string, string>;
  highlighted: string | null;
  openId: string;
  sort: Sort<KeyColumn>;
  selection: Selection;
  onSort: (column: KeyColumn) => void;
  onOpen: (key: ApiKeyView) => void;
  onRevoke: (key: ApiKeyView) => void;
};

type KeyTableColumn = Column<ApiKeyView, KeyColumn>;

type Owners = ReadonlyMap<string, string>;

/** If the page is too narrow for the owner column, the owner is shown under the name. */
const nameColumn = (owners: Owners): KeyTableColumn => ({
  name: 'name',
  label: 'Name',
  width: 'name',
  cell: (key) => (
    <>
      <span class="line">
        <Clip>{key.name}</Clip>
        <RefusedBadge apiKey={key} isInTable />
        <LimitedBadge apiKey={key} />
      </span>
      {key.owner && (
        <span class="second-line">
          <Clip>{owners.get(getOwnerId(key))}</Clip>
        </span>
      )}
    </>
  ),
});

/** Says that a key is refused because its owner is disabled. In a table, shows only one word, because the name needs the space. */
export function RefusedBadge({ apiKey, isInTable = false }: { apiKey: ApiKeyView; isInTable?: boolean }) {
  if (!apiKey.ownerDisabled) return null;
  return (
    <span class="badge warn" data-tip={isInTable ? 'The owner is disabled' : undefined}>
      Refused{!isInTable && ': owner disabled'}
    </span>
  );
}

/** Says that a key is limited to addresses or to a number of calls per day. */
function LimitedBadge({ apiKey }: { apiKey: ApiKeyView }) {
  const limits = summarizeLimits(apiKey);
  if (limits === '') return null;
  return (
    <span class="badge" data-tip={capitalized(limits)}>
      Limited
    </span>
  );
}

const ownerColumn = (owners: Owners): KeyTableColumn => ({
  name: 'owner',
  label: 'Owner',
  width: 'text',
  needs: 'medium',
  cell: (key) => key.owner && (key.owner.isYou ? <OwnerTag owner={key.owner} /> : <Clip>{owners.get(getOwnerId(key))}</Clip>),
});

const dateColumns: readonly KeyTableColumn[] = [
  {
    name: 'created',
    label: 'Created',
    width: 'day',
    cell: ({ createdAt }) => <Day at={createdAt} />,
  },
  {
    name: 'used',
    label: 'Last used',
    width: 'day',
    cell: ({ lastUsedAt }) => (lastUsedAt === null ? <span class="faint">Never</span> : <Day at={lastUsedAt} />),
  },
  { name: 'expiry', label: 'Expiry', width: 'end', cell: (key) => <Expiry apiKey={key} isInTable /> },
];

export function ApiKeyTable({ apiKeys, owners, highlighted, openId, sort, selection, onSort, onOpen, onRevoke }: ApiKeyTableProps) {
  // The core sends owners only to viewers who can see other users' keys.
  const columns = useMemo(() => [nameColumn(owners), ...(owners.size > 0 ? [ownerColumn(owners)] : []), ...dateColumns], [owners]);
  return (
    <DataTable
      label="API keys"
      columns={columns}
      rows={apiKeys}
      getId={({ id }) => id}
      getName={({ name }) => name}
      getClass={(key) => `${hasExpired(key, now.value) || key.ownerDisabled ? 'dim' : ''} ${key.id === highlighted ? 'highlighted' : ''}`}
      sort={sort}
      onSort={onSort}
      onOpen={onOpen}
      openId={openId}
      getHref={({ id }) => formatAddress('api-keys', { open: id })}
      selection={selection}
      action={{ icon: 'trash', label: ({ name }) => `Revoke ${name}`, run: onRevoke }}
    />
  );
}

export function Expiry({ apiKey, isInTable = false }: { apiKey: ApiKeyView; isInTable?: boolean }) {
  if (apiKey.expiresAt === null) return <span class="faint">No expiration</span>;
  return (
    <span class="line wraps">
      <ExpiryDay at={apiKey.expiresAt} zone={apiKey.expiryTimeZone} isInTable={isInTable} /> <ExpiryBadge apiKey={apiKey} />
    </span>
  );
}

/** Says that a key has expired, or will within 30 days. */
export function ExpiryBadge({ apiKey }: { apiKey: ApiKeyView }) {
  if (apiKey.expiresAt === null) return null;
  if (hasExpired(apiKey, now.value)) return <span class="badge bad">Expired</span>;
  if (!isExpiringSoon(apiKey, now.value)) return null;
  return <span class="badge warn">{formatRelative(toExpiry(apiKey.expiresAt, null), now.value)}</span>;
}

export function OwnerTag({ owner }: { owner: NonNullable<ApiKeyView['owner']> }) {
  return <bdi class={owner.isYou ? 'tag you' : 'tag'}>{owner.isYou ? 'You' : owner.name}</bdi>;
}
