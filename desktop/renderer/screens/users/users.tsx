import { useCallback, useState } from 'preact/hooks';
import type { UsersView, UserView } from '#contract/console/users.ts';
import { OneTimeSecret, SecretDialog } from '../../components/forms/secret.tsx';
import { Icon } from '../../components/icons.tsx';
import { Empty, Loadable } from '../../components/loadable.tsx';
import { Page } from '../../components/page.tsx';
import { ExportPagesButton } from '../../components/table/export-pages-button.tsx';
import { MoreButton } from '../../components/table/more-button.tsx';
import { focusRow } from '../../components/table/table-focus.ts';
import { usePages } from '../../components/use-pages.ts';
import { useView } from '../../components/use-view.ts';
import { announce } from '../../state/announcement.ts';
import { canUseKeys } from '../../state/commands.ts';
import { pluralize } from '../../state/format/format.ts';
import type { Pages } from '../../state/loading/pages.ts';
import { mapped } from '../../state/loading/resource.ts';
import type { ScreenProps } from '../../state/navigation.ts';
import { DisableUser, EditUser } from './change-user.tsx';
import { CreateUser } from './create-user.tsx';
import { DeleteUser } from './delete-user.tsx';
import { Invitation } from './invitation.tsx';
import { ResetPassword, ResetSecondFactor, UnlinkUser } from './reset-password.tsx';
import { OpenUser, UserDetails } from './user-details.tsx';
import { UserList, UserSearch } from './user-list.tsx';
import { type UserListView, userCsvHead, userCsvRow, userListView, usersInView } from './user-list-view.ts';

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
