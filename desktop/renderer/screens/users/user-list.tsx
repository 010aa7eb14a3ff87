import { useMemo } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import type { UserView } from '#contract/console/users.ts';
import { Empty } from '../../components/loadable.tsx';
import { Clip } from '../../components/table/clip.tsx';
import { DataTable } from '../../components/table/data-table.tsx';
import type { Column } from '../../components/table/table-model.ts';
import { Day } from '../../components/time.tsx';
import { formatAddress } from '../../state/address/addresses.ts';
import { formatNumber } from '../../state/format/format.ts';
import { formatMembership, userTypeLabels } from '../../state/format/labels.ts';
import { sortAfterPress } from '../../state/format/sorting.ts';
import type { UserColumn, UserListView } from './user-list-view.ts';

type UserListProps = {
  users: readonly UserView[];
  settings: UserListView;
  session: SessionView;
  onChange: (changes: Partial<UserListView>) => void;
  openId: string;
  onOpen: (user: UserView) => void;
  onDelete: (user: UserView) => void;
};

type UserSearchProps = { settings: UserListView; onChange: (changes: Partial<UserListView>) => void };

const shownLabels = { all: 'All', away: 'Not signed in for 90 days' } as const;

export function UserSearch({ settings: { search, show }, onChange }: UserSearchProps) {
  return (
    <search class="toolbar">
      <label class="grow">
        <span class="visually-hidden">Search by name or email</span>
        <input
          type="search"
          placeholder="Search by name or email"
          value={search}
          onInput={({ currentTarget }) => onChange({ search: currentTarget.value })}
        />
      </label>
      {/* biome-ignore lint/a11y/useSemanticElements: A fieldset is for a form's fields; these are buttons. */}
      <div class="chips" role="group" aria-label="Show">
        {(['all', 'away'] as const).map((name) => (
          <button key={name} type="button" aria-pressed={name === show} onClick={() => onChange({ show: name })}>
            {shownLabels[name]}
          </button>
        ))}
      </div>
    </search>
  );
}

export function UserList({ users, settings: { sort }, session, onChange, openId, onOpen, onDelete }: UserListProps) {
  const viewerId = session.viewer.id;
  const columns = useMemo(() => columnsFor(viewerId), [viewerId]);
  if (users.length === 0) return <Empty title="No matching users" />;
  return (
    <DataTable
      label="Users"
      columns={columns}
      rows={users}
      getId={({ id }) => id}
      getName={({ name }) => name}
      openId={openId}
      getHref={({ id }) => formatAddress('users', { open: id })}
      onOpen={onOpen}
      sort={sort}
      onSort={(column) => onChange({ sort: sortAfterPress(sort, column, column === 'keys' || column === 'seen') })}
      action={{
        icon: 'trash',
        label: ({ name }) => `Delete ${name}`,
        isPossible: ({ id }) => id !== viewerId,
        run: onDelete,
      }}
    />
  );
}

const columnsFor = (viewerId: string): Column<UserView, UserColumn>[] => [
  {
    name: 'name',
    label: 'Name',
    width: 'name',
    cell: ({ id, name, email, disabledAt, secondFactor }) => (
      <>
        <span class="line">
          <Clip>{name}</Clip>
          {id === viewerId && <span class="tag you">You</span>}
          {disabledAt !== null && <span class="badge warn">Disabled</span>}
          {secondFactor && (
            <span class="badge" data-tip="Has a second factor">
              2FA
            </span>
          )}
        </span>
        <span class="second-line under-wide">
          <Clip>{email}</Clip>
        </span>
      </>
    ),
  },
  { name: 'email', label: 'Email', width: 'text', needs: 'wide', cell: ({ email }) => <Clip class="faint">{email}</Clip> },
  { name: 'type', label: 'Type', width: 'type', cell: ({ userType }) => <span class="badge">{userTypeLabels[userType]}</span> },
  { name: 'place', label: 'Belongs to', width: 'text', cell: (user) => <Clip>{formatMembership(user)}</Clip> },
  { name: 'keys', label: 'Keys', width: 'number', cell: ({ apiKeys }) => formatNumber(apiKeys) },
  {
    name: 'seen',
    label: 'Last sign-in',
    width: 'day',
    cell: ({ lastSignInAt }) => (lastSignInAt === null ? <span class="faint">Never</span> : <Day at={lastSignInAt} />),
  },
];
