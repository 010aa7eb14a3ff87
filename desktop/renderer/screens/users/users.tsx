import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import type { DeletionView, UsersView, UserView } from '#contract/console/users.ts';
import { Details, Facts } from '../../components/details.tsx';
import { ExportPagesButton } from '../../components/export-buttons.tsx';
import { Icon } from '../../components/icons.tsx';
import { Empty, Loadable, MoreButton, usePages, useResource, useView } from '../../components/list.tsx';
import { Page } from '../../components/page.tsx';
import { OneTimeSecret, SecretDialog } from '../../components/secret.tsx';
import { Clip, type Column, DataTable, focusRow } from '../../components/table.tsx';
import { Day, Moment } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { announce } from '../../state/announcement.ts';
import { viewerAsOwner } from '../../state/api-keys.ts';
import { canUseKeys } from '../../state/commands.ts';
import { describeFailure, isNotFound } from '../../state/failure-text.ts';
import { formatNumber, pluralize, sortAfterPress } from '../../state/format.ts';
import { formatMembership, userTypeLabels } from '../../state/labels.ts';
import { mapped, type Pages } from '../../state/list.ts';
import type { ScreenProps } from '../../state/navigation.ts';
import { type UserColumn, type UserListView, userCsvHead, userCsvRow, userListView, usersInView } from '../../state/users.ts';
import {
  CreateUser,
  DeleteUser,
  DisableUser,
  EditUser,
  Invitation,
  ResetPassword,
  ResetSecondFactor,
  UnlinkUser,
} from './user-dialogs.tsx';

/** @property isNew whether the user was just created; otherwise, only the password is new */
type NewPassword = { user: UserView; password: OneTimeSecret; isNew: boolean };

function userPages(search: string, show: UserListView['show']): Pages<UsersView> {
  return {
    load: (cursor) => window.callkey.request('listUsers', { search, cursor, ...(show === 'away' ? { away: 'true' } : {}) }),
    join: (view, next) => ({ users: [...view.users, ...next.users], nextCursor: next.nextCursor }),
    count: ({ users }) => users.length,
    empty: { users: [], nextCursor: null },
  };
}

/** Shows the users in the viewer's scope. */
export function Users({ session, title }: ScreenProps) {
  const [isCreating, setCreating] = useState(false);
  const [newPassword, setNewPassword] = useState<NewPassword | null>(null);
  const [resetting, setResetting] = useState<UserView | null>(null);
  const [resettingFactor, setResettingFactor] = useState<UserView | null>(null);
  const [unlinking, setUnlinking] = useState<UserView | null>(null);
  const [editing, setEditing] = useState<UserView | null>(null);
  const [disabling, setDisabling] = useState<UserView | null>(null);
  const [deleting, setDeleting] = useState<UserView | null>(null);

  const [settings, change] = useView(userListView.name, userListView.initial);
  const { resource, pages, isWhole } = usePages(
    settings.show === 'away' ? 'users-away' : 'users',
    (search) => userPages(search, settings.show),
    settings.search.trim(),
  );
  const users = resource.state.value.value?.users ?? [];
  // If the core has more users than are loaded, it has already searched them.
  const matches = usersInView(users, isWhole ? settings : { ...settings, search: '' });
  const isEmpty = users.length === 0 && settings.search === '' && settings.show === 'all';
  const loadRows = (cursor: string | null) =>
    mapped(
      isWhole && resource.state.value.value
        ? Promise.resolve({ ok: true, value: { users: matches, nextCursor: null } })
        : userPages(settings.search.trim(), settings.show).load(cursor),
      ({ users, nextCursor }) => ({ rows: users.map(userCsvRow), nextCursor }),
    );
  const openId = settings.open;
  const setOpenId = (id: string) => change({ open: id });
  const openUser = users.find(({ id }) => id === openId);
  /** Changes the filters, and closes the details of a user that they hide. */
  const narrow = (changes: Partial<typeof settings>) => {
    const isHidden = openUser && usersInView([openUser], { ...settings, ...changes }).length === 0;
    change({ ...changes, ...(isHidden ? { open: '' } : {}) });
  };
  const closeDetails = useCallback(() => {
    setOpenId('');
    focusRow(openId);
  }, [openId]);

  return (
    <>
      <Page
        title={title}
        actions={
          <>
            {!isEmpty && <ExportPagesButton name="users" head={userCsvHead} load={loadRows} />}
            <button type="button" class="primary" onClick={() => setCreating(true)}>
              <Icon name="plus" /> Create user
            </button>
          </>
        }
        head={resource.state.value.value && !isEmpty && <UserSearch settings={settings} onChange={narrow} />}
        details={
          resource.state.value.value &&
          openId !== '' && (
            <OpenUser key={openId} id={openId} listed={openUser} listLoadedAt={resource.state.value.loadedAt} onClose={closeDetails}>
              {(user) => (
                <UserDetails
                  user={user}
                  isYou={user.id === session.viewer.id}
                  canSeeKeys={canUseKeys(session)}
                  onEdit={() => setEditing(user)}
                  onDisable={() => setDisabling(user)}
                  onReset={() => setResetting(user)}
                  onResetFactor={() => setResettingFactor(user)}
                  onUnlink={() => setUnlinking(user)}
                  onDelete={() => setDeleting(user)}
                  onClose={closeDetails}
                />
              )}
            </OpenUser>
          )
        }
        resource={resource}
        foot={
          !isEmpty && (
            <>
              <span role="status">
                {pluralize(matches.length, 'user')}
                {resource.state.value.value?.nextCursor && ' so far'}
              </span>
              <MoreButton resource={resource} pages={pages} label="Show more users" />
            </>
          )
        }
      >
        <Loadable resource={resource} noun="users" isInPage>
          {() =>
            isEmpty ? (
              <Empty title="No users yet">
                <p>Create the first user, who can then sign in and create keys.</p>
              </Empty>
            ) : (
              <UserList
                users={matches}
                settings={settings}
                session={session}
                onChange={change}
                openId={openId}
                onOpen={({ id }) => setOpenId(id)}
                onDelete={setDeleting}
              />
            )
          }
        </Loadable>
      </Page>
      {resettingFactor && (
        <ResetSecondFactor
          user={resettingFactor}
          onDone={() => {
            setResettingFactor(null);
            void resource.refresh();
          }}
          onClose={() => setResettingFactor(null)}
        />
      )}
      {unlinking && (
        <UnlinkUser
          user={unlinking}
          onDone={() => {
            setUnlinking(null);
            void resource.refresh();
          }}
          onClose={() => setUnlinking(null)}
        />
      )}
      {isCreating && (
        <CreateUser
          session={session}
          onClose={() => setCreating(false)}
          onCreated={(user, password) => {
            setCreating(false);
            // If the server doesn't use passwords, the user signs in with the provider.
            if (password === null) announce(`User ${user.name} was created.`);
            else setNewPassword({ user, password: new OneTimeSecret(password), isNew: true });
            void resource.refresh();
          }}
        />
      )}
      {newPassword && (
        <SecretDialog
          title="Share the password"
          lead={
            <>
              <strong>{newPassword.user.name}</strong> signs in with <strong>{newPassword.user.email}</strong> and this password, then
              chooses a new one. This is the only time you’ll see it.
            </>
          }
          label="One-time password"
          secret={newPassword.password}
          lost="This password can’t be shown again. To get a new one, reset the password."
          onClose={() => {
            setNewPassword(null);
            announce(
              newPassword.isNew ? `User ${newPassword.user.name} was created.` : `The password of ${newPassword.user.name} was reset.`,
            );
          }}
        >
          {newPassword.isNew && <Invitation user={newPassword.user} />}
        </SecretDialog>
      )}
      {editing && (
        <EditUser
          user={editing}
          session={session}
          onClose={() => setEditing(null)}
          onChanged={(user) => {
            setEditing(null);
            announce(`User ${user.name} was changed.`);
            void resource.refresh();
          }}
        />
      )}
      {disabling && (
        <DisableUser
          user={disabling}
          onClose={() => setDisabling(null)}
          onChanged={({ name, disabledAt }) => {
            setDisabling(null);
            announce(disabledAt === null ? `User ${name} was enabled.` : `User ${name} was disabled.`);
            void resource.refresh();
          }}
        />
      )}
      {resetting && (
        <ResetPassword
          user={resetting}
          onClose={() => setResetting(null)}
          onReset={(password) => {
            setResetting(null);
            setNewPassword({ user: resetting, password: new OneTimeSecret(password), isNew: false });
          }}
        />
      )}
      {deleting && (
        <DeleteUser
          user={deleting}
          onClose={() => setDeleting(null)}
          onAlreadyDeleted={() => {
            setDeleting(null);
            void resource.refresh();
          }}
          onDeleted={() => {
            setDeleting(null);
            setOpenId('');
            announce(`User ${deleting.name} was deleted.`);
            void resource.refresh().then(() => document.querySelector<HTMLElement>('main h1')?.focus());
          }}
        />
      )}
    </>
  );
}

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

function UserSearch({ settings: { search, show }, onChange }: UserSearchProps) {
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

function UserList({ users, settings: { sort }, session, onChange, openId, onOpen, onDelete }: UserListProps) {
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

type UserDetailsProps = {
  user: UserView;
  isYou: boolean;
  canSeeKeys: boolean;
  onEdit: () => void;
  onDisable: () => void;
  onReset: () => void;
  onResetFactor: () => void;
  onUnlink: () => void;
  onDelete: () => void;
  onClose: () => void;
};

/** Shows everything about a user, and the actions for them. */
function UserDetails({
  user,
  isYou,
  canSeeKeys,
  onEdit,
  onDisable,
  onReset,
  onResetFactor,
  onUnlink,
  onDelete,
  onClose,
}: UserDetailsProps) {
  const membership = formatMembership(user);
  return (
    <Details
      title={user.name}
      badge={
        <span class="line">
          <span class="badge">{userTypeLabels[user.userType]}</span> {user.disabledAt !== null && <span class="badge warn">Disabled</span>}
        </span>
      }
      onClose={onClose}
    >
      <div class="actions at-start">
        {canSeeKeys && user.apiKeys > 0 && (
          <a class="button" href={formatAddress('api-keys', { owner: isYou ? viewerAsOwner : user.email })}>
            Show API keys
          </a>
        )}
        <a class="button" href={formatAddress('activity', { actor: user.id })}>
          Show activity
        </a>
        <button type="button" onClick={onEdit}>
          Edit…
        </button>
        {!isYou && (
          <>
            <button type="button" onClick={onReset}>
              Reset password…
            </button>
            {user.secondFactor && (
              <button type="button" onClick={onResetFactor}>
                Reset second factor…
              </button>
            )}
            {user.link && (
              <button type="button" onClick={onUnlink}>
                Unlink…
              </button>
            )}
            <button type="button" class={user.disabledAt === null ? 'warns' : undefined} onClick={onDisable}>
              {user.disabledAt === null ? 'Disable…' : 'Enable…'}
            </button>
            <button type="button" class="warns" onClick={onDelete}>
              Delete…
            </button>
          </>
        )}
      </div>
      <Facts
        facts={[
          ['Email', <bdi key="email">{user.email}</bdi>],
          ...(membership === '' ? [] : ([['Belongs to', <bdi key="membership">{membership}</bdi>]] as const)),
          ['API keys', formatNumber(user.apiKeys)],
          ['Last sign-in', user.lastSignInAt === null ? 'Never' : <Moment key="seen" at={user.lastSignInAt} />],
          ['Second factor', user.secondFactor ? 'On' : 'Off'],
          ...(user.link === null ? [] : ([['Linked to', <bdi key="link">{user.link.issuer}</bdi>]] as const)),
          ...(user.disabledAt === null ? [] : ([['Disabled', <Moment key="disabled" at={user.disabledAt} />]] as const)),
          ['Created', <Moment key="created" at={user.createdAt} />],
        ]}
      />
      {isYou && <p class="hint">This is your own account. Another administrator can reset your password, or disable or delete you.</p>}
    </Details>
  );
}

type OpenUserProps = {
  id: string;
  /** The user, if they are in the list. */
  listed: UserView | undefined;
  /** When the list was last loaded. Whenever it's loaded, this user is loaded again as well. */
  listLoadedAt: number;
  onClose: () => void;
  children: (user: UserView) => ComponentChildren;
};

/** Finds the user that an address names. If there are many users, the list may not include this one. */
function OpenUser({ id, listed, listLoadedAt, onClose, children }: OpenUserProps) {
  const load = async () => (listed ? { ok: true as const, value: null } : window.callkey.request('previewDeletion', { id }));
  const resource = useResource<DeletionView | null>(load, listed ? 'listed' : id);
  const { value, failure } = resource.state.value;
  useEffect(() => {
    if (!listed) void resource.refreshIfOlder(0);
  }, [resource, listLoadedAt]);
  if (listed) return <>{children(listed)}</>;
  if (value) return <>{children(value.user)}</>;
  if (!failure) return null;
  return (
    <Details title="User" onClose={onClose}>
      <p>{isNotFound(failure) ? 'This user was deleted, or you don’t have access to them.' : describeFailure(failure)}</p>
    </Details>
  );
}
