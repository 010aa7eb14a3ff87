import { useMemo } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import type { UsersView, UserView } from '#contract/console/users.ts';
import { formatCount } from '#contract/text/count.ts';
import { foldText } from '#contract/text/text.ts';
import { Details, Facts, NoDetails } from '../../components/details.tsx';
import { ExportRowsButton } from '../../components/export-buttons.tsx';
import { Chips, SearchInput } from '../../components/form.tsx';
import { Icon } from '../../components/icons.tsx';
import { Count, Empty, useDialogs, useFilters, useOpen, useSearchedList } from '../../components/list.tsx';
import { ListPage } from '../../components/page.tsx';
import { Menu } from '../../components/popovers.tsx';
import { OneTimeSecret } from '../../components/secret.tsx';
import { Clip, type Column, DataTable } from '../../components/table.tsx';
import { Day, Moment } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { viewerAsOwner } from '../../state/api-keys.ts';
import { ownZone } from '../../state/clock.ts';
import { canUseKeys } from '../../state/commands.ts';
import { defineFilters, oneOf, sortBy, text } from '../../state/filters.ts';
import { formatTimestamp, type SortValue, sortAfterPress, sorted } from '../../state/format.ts';
import { formatMembership, formatPlace, userTypeLabels } from '../../state/labels.ts';
import { mapped } from '../../state/list.ts';
import type { ScreenProps } from '../../state/navigation.ts';
import { ChangeUser, type ChangeUserDialog, CreateUser, DeleteUser, SharePassword } from './user-dialogs.tsx';

type UserColumn = 'name' | 'email' | 'type' | 'tenancy' | 'keys' | 'seen';

const screenFilters = defineFilters('users', ['open'], {
  open: text(),
  search: text(),
  // `away` for those who haven't signed in for 90 days
  show: oneOf(['all', 'away'], 'all'),
  sort: sortBy<UserColumn>(['name', 'email', 'type', 'tenancy', 'keys', 'seen'], { column: 'name', isDescending: false }),
});
type Filters = typeof screenFilters.initial;

/** @property isNew whether the user was just created; otherwise, only the password is new */
type UserDialog =
  | { name: 'create' }
  | { name: 'share-password'; user: UserView; password: OneTimeSecret; isNew: boolean }
  | { name: 'delete'; user: UserView }
  | ChangeUserDialog;

export function Users({ session, title }: ScreenProps) {
  const [filters, change] = useFilters(screenFilters);
  const search = filters.search.trim();
  const load = (typed: string, cursor: string | null) =>
    window.callkey.request('listUsers', { search: typed, cursor, ...(filters.show === 'away' ? { away: 'true' } : {}) });
  const { list, isWhole } = useSearchedList<UsersView>({ key: `users/${filters.show}`, search, load });
  const { dialog, open, close, done } = useDialogs<UserDialog>(list);
  const { view } = list.state.value;
  const users = view?.users ?? [];
  // If the core has more users than are loaded, it has already searched them.
  const matches = matching(users, isWhole ? filters : { ...filters, search: '' });
  const isEmpty = users.length === 0 && filters.search === '' && filters.show === 'all';
  const opened = useOpen(view?.users, filters.open, (id) => mapped(window.callkey.request('previewDeletion', { id }), ({ user }) => user));
  const closeDetails = () => change({ open: '' });
  const viewerId = session.viewer.id;
  const columns = useMemo(() => columnsFor(session), [session]);

  const loadRows = (cursor: string | null) =>
    mapped(
      isWhole && view ? Promise.resolve({ ok: true, value: { users: matches, nextCursor: null } }) : load(search, cursor),
      ({ users, nextCursor }) => ({ rows: users.map(toCsvRow), nextCursor }),
    );
  /** Changes the filters, and closes the details of a user that they hide. */
  function narrow(changes: Partial<Filters>): void {
    const listed = users.find(({ id }) => id === filters.open);
    const isHidden = listed && matching([listed], { ...filters, ...changes }).length === 0;
    change({ ...changes, ...(isHidden ? { open: '' } : {}) });
  }
  const sharePassword = (user: UserView, password: string, isNew: boolean) =>
    open({ name: 'share-password', user, password: new OneTimeSecret(password), isNew });

  return (
    <>
      <ListPage
        title={title}
        actions={
          <>
            {!isEmpty && <ExportRowsButton name="users" head={csvHead} load={loadRows} />}
            <button type="button" class="primary" onClick={() => open({ name: 'create' })}>
              <Icon name="plus" /> Create user
            </button>
          </>
        }
        head={
          view &&
          !isEmpty && (
            <search class="toolbar">
              <SearchInput label="Search by name or email" value={filters.search} onInput={(typed) => narrow({ search: typed })} />
              <Chips value={filters.show} options={shownLabels} onChange={(show) => narrow({ show })} />
            </search>
          )
        }
        details={
          opened.row ? (
            <UserDetails
              user={opened.row}
              isYou={opened.row.id === viewerId}
              canSeeKeys={canUseKeys(session)}
              onOpen={open}
              onClose={closeDetails}
            />
          ) : (
            opened.failure && (
              <NoDetails
                title="User"
                rowId={filters.open}
                failure={opened.failure}
                gone="This user was deleted, or you don’t have access to them."
                hasHistory
                onClose={closeDetails}
              />
            )
          )
        }
        list={list}
        foot={!isEmpty && <Count list={list} count={matches.length} noun="user" />}
        noun="users"
      >
        {() =>
          isEmpty ? (
            <Empty title="No users yet">
              <p>Create the first user, who can then sign in and create keys.</p>
            </Empty>
          ) : matches.length === 0 ? (
            <Empty title="No matching users" />
          ) : (
            <DataTable
              label="Users"
              columns={columns}
              rows={matches}
              getId={({ id }) => id}
              getName={({ name }) => name}
              openId={filters.open}
              getHref={({ id }) => formatAddress('users', { open: id })}
              onOpen={({ id }) => change({ open: id })}
              sort={filters.sort}
              onSort={(column) => change({ sort: sortAfterPress(filters.sort, column, column === 'keys' || column === 'seen') })}
              action={{
                icon: 'trash',
                label: ({ name }) => `Delete ${name}`,
                isPossible: ({ id }) => id !== viewerId,
                run: (user) => open({ name: 'delete', user }),
              }}
            />
          )
        }
      </ListPage>
      {dialog?.name === 'create' && (
        <CreateUser
          session={session}
          onCreated={(user, password) => {
            // If the server doesn't use passwords, the user signs in with the provider.
            if (password === null) return void done(`User ${user.name} was created.`);
            sharePassword(user, password, true);
            void list.refresh();
          }}
          onClose={close}
        />
      )}
      {dialog?.name === 'share-password' && (
        <SharePassword
          {...dialog}
          onClose={() =>
            void done(dialog.isNew ? `User ${dialog.user.name} was created.` : `The password of ${dialog.user.name} was reset.`)
          }
        />
      )}
      {dialog?.name === 'delete' && (
        <DeleteUser
          user={dialog.user}
          onDeleted={() => {
            closeDetails();
            void done(`User ${dialog.user.name} was deleted.`).then(() => document.querySelector<HTMLElement>('main h1')?.focus());
          }}
          onAlreadyDeleted={() => void done('')}
          onClose={close}
        />
      )}
      {dialog && 'user' in dialog && dialog.name !== 'share-password' && dialog.name !== 'delete' && (
        <ChangeUser
          {...dialog}
          session={session}
          onReset={(password) => sharePassword(dialog.user, password, false)}
          onDone={(text) => void done(text)}
          onClose={close}
        />
      )}
    </>
  );
}

const shownLabels = [
  ['all', 'All'],
  ['away', 'Not signed in for 90 days'],
] as const;

const sortValues: Readonly<Record<UserColumn, (user: UserView) => SortValue>> = {
  name: ({ name }) => name,
  email: ({ email }) => email,
  type: ({ userType }) => userTypeLabels[userType],
  tenancy: formatMembership,
  keys: ({ apiKeys }) => apiKeys,
  seen: ({ lastSignInAt }) => (lastSignInAt === null ? null : Date.parse(lastSignInAt)),
};

function matching(users: readonly UserView[], { search, sort }: Filters): UserView[] {
  const query = foldText(search.trim());
  const matches = users.filter(({ name, email }) => foldText(`${name} ${email}`).includes(query));
  return sorted(matches, sortValues[sort.column], sort.isDescending);
}

const csvHead = ['Name', 'Email', 'Type', 'Belongs to', 'API keys', 'Last sign-in', 'Disabled', 'Created'] as const;

function toCsvRow(user: UserView): string[] {
  const { name, email, userType, apiKeys, lastSignInAt, disabledAt, createdAt } = user;
  const showTime = (at: string) => formatTimestamp(at, ownZone.peek());
  return [
    name,
    email,
    userTypeLabels[userType],
    formatMembership(user),
    String(apiKeys),
    lastSignInAt === null ? 'Never' : showTime(lastSignInAt),
    disabledAt ? showTime(disabledAt) : '',
    showTime(createdAt),
  ];
}

const columnsFor = (session: SessionView): Column<UserView, UserColumn>[] => [
  {
    name: 'name',
    label: 'Name',
    width: 'name',
    cell: ({ id, name, email, disabledAt, secondFactor }) => (
      <>
        <span class="line">
          <Clip>{name}</Clip>
          {id === session.viewer.id && <span class="tag you">You</span>}
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
  // All users of one account belong to the same.
  ...(session.tenancy?.kind === 'account' || session.viewer.account !== null
    ? []
    : ([
        {
          name: 'tenancy',
          label: 'Belongs to',
          width: 'text',
          cell: (user) => formatPlace(user, session) && <Clip>{formatPlace(user, session)}</Clip>,
        },
      ] satisfies Column<UserView, UserColumn>[])),
  { name: 'keys', label: 'Keys', width: 'number', cell: ({ apiKeys }) => formatCount(apiKeys) },
  { name: 'seen', label: 'Last sign-in', width: 'day', cell: ({ lastSignInAt }) => <Day at={lastSignInAt} /> },
];

type UserDetailsProps = {
  user: UserView;
  isYou: boolean;
  canSeeKeys: boolean;
  onOpen: (dialog: UserDialog) => void;
  onClose: () => void;
};

function UserDetails({ user, isYou, canSeeKeys, onOpen, onClose }: UserDetailsProps) {
  const membership = formatMembership(user);
  const isDisabled = user.disabledAt !== null;
  const action = (label: string, name: Exclude<UserDialog['name'], 'create' | 'share-password'>, warns = false) => (
    <button type="button" class={warns ? 'warns' : undefined} onClick={() => onOpen({ name, user })}>
      {label}
    </button>
  );
  return (
    <Details
      title={user.name}
      rowId={user.id}
      badge={
        <span class="line">
          <span class="badge">{userTypeLabels[user.userType]}</span> {isDisabled && <span class="badge warn">Disabled</span>}
        </span>
      }
      onClose={onClose}
    >
      <div class="row">
        {canSeeKeys && user.apiKeys > 0 && (
          <a class="button" href={formatAddress('api-keys', { owner: isYou ? viewerAsOwner : user.email })}>
            Show API keys
          </a>
        )}
        <a class="button" href={formatAddress('activity', { actor: user.id })}>
          Show activity
        </a>
        {action('Edit…', 'edit')}
        {!isYou && (
          <Menu>
            {action('Reset password…', 'reset-password')}
            {user.secondFactor && action('Reset second factor…', 'reset-second-factor')}
            {user.link && action('Unlink…', 'unlink')}
            {action(isDisabled ? 'Enable…' : 'Disable…', 'disable', !isDisabled)}
            {action('Delete…', 'delete', true)}
          </Menu>
        )}
      </div>
      <Facts
        facts={[
          ['Email', <bdi key="email">{user.email}</bdi>],
          ['Belongs to', membership !== '' && <bdi key="membership">{membership}</bdi>],
          ['API keys', formatCount(user.apiKeys)],
          ['Last sign-in', user.lastSignInAt === null ? 'Never' : <Moment key="seen" at={user.lastSignInAt} />],
          ['Second factor', user.secondFactor ? 'On' : 'Off'],
          ['Linked to', user.link && <bdi key="link">{user.link.issuer}</bdi>],
          ['Disabled', user.disabledAt && <Moment key="disabled" at={user.disabledAt} />],
          ['Created', <Moment key="created" at={user.createdAt} />],
        ]}
      />
      {isYou && <p class="hint">This is your own account. Another administrator can reset your password, or disable or delete you.</p>}
    </Details>
  );
}
