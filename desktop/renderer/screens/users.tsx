import { useCallback, useState } from 'preact/hooks';
import type { UserView } from '#contract/console.ts';
import { ExportButton } from '../components/export-button.tsx';
import { Icon } from '../components/icons.tsx';
import { Empty, Loadable, useFreshResource } from '../components/loadable.tsx';
import { Freshness, Page } from '../components/page.tsx';
import { OneTimeSecret, SecretDialog } from '../components/secret.tsx';
import { focusRow } from '../components/table-focus.ts';
import { useView } from '../components/use-view.ts';
import { announce } from '../state/announcement.ts';
import { pluralize } from '../state/format.ts';
import type { ScreenProps } from '../state/navigation.ts';
import { initialView, userCsvHead, userCsvRow, usersInView } from '../state/user-list.ts';
import { CreateUser } from './create-user.tsx';
import { DeleteUser } from './delete-user.tsx';
import { ResetPassword } from './reset-password.tsx';
import { UserDetails } from './user-details.tsx';
import { UserList } from './user-list.tsx';

/** @property isNew the user was created just now; otherwise, only the password is new */
type HandedOver = { user: UserView; password: OneTimeSecret; isNew: boolean };

/** The users of the viewer's scope. */
export function Users({ session, title }: ScreenProps) {
  const resource = useFreshResource('users', () => window.callkey.listUsers());
  const [isCreating, setCreating] = useState(false);
  const [handedOver, setHandedOver] = useState<HandedOver | null>(null);
  const [resetting, setResetting] = useState<UserView | null>(null);
  const [openId, setOpenId] = useState<string | null>(null);
  const [deleting, setDeleting] = useState<UserView | null>(null);

  const [settings, change] = useView('users', initialView);
  const users = resource.state.value.value?.users ?? [];
  const found = usersInView(users, settings);
  const openUser = users.find(({ id }) => id === openId);
  const closeDetails = useCallback(() => {
    setOpenId(null);
    focusRow(openId);
  }, [openId]);

  return (
    <>
      <Page
        title={title}
        actions={
          <>
            {users.length > 0 && <ExportButton name="users" head={userCsvHead} rows={() => found.map(userCsvRow)} />}
            <button type="button" class="primary" onClick={() => setCreating(true)}>
              <Icon name="plus" /> Create user
            </button>
          </>
        }
        foot={
          users.length > 0 && (
            <>
              <Freshness resource={resource} />
              <span role="status">{pluralize(found.length, 'user')}</span>
            </>
          )
        }
      >
        <Loadable resource={resource} what="the users">
          {() =>
            users.length === 0 ? (
              <Empty title="No users yet">
                <p>Create the first user, who can then sign in and create keys.</p>
              </Empty>
            ) : (
              <UserList
                found={found}
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
      {isCreating && (
        <CreateUser
          session={session}
          onClose={() => setCreating(false)}
          onCreated={(user, password) => {
            setCreating(false);
            setHandedOver({ user, password: new OneTimeSecret(password), isNew: true });
            void resource.refresh();
          }}
        />
      )}
      {handedOver && (
        <SecretDialog
          title="Hand over the password"
          lead={
            <>
              <strong>{handedOver.user.name}</strong> signs in with <strong>{handedOver.user.email}</strong> and this password, and then
              chooses another. The console shows it only now.
            </>
          }
          label="One-time password"
          secret={handedOver.password}
          lost="Nobody can show it again. To get another one, reset the password."
          onClose={() => {
            setHandedOver(null);
            announce(handedOver.isNew ? `User ${handedOver.user.name} was created.` : `The password of ${handedOver.user.name} was reset.`);
          }}
        />
      )}
      {openUser && (
        <UserDetails
          user={openUser}
          isYou={openUser.id === session.viewer.id}
          onReset={() => setResetting(openUser)}
          onDelete={() => setDeleting(openUser)}
          onClose={closeDetails}
        />
      )}
      {resetting && (
        <ResetPassword
          user={resetting}
          onClose={() => setResetting(null)}
          onReset={(password) => {
            setResetting(null);
            setHandedOver({ user: resetting, password: new OneTimeSecret(password), isNew: false });
          }}
        />
      )}
      {deleting && (
        <DeleteUser
          user={deleting}
          onClose={() => setDeleting(null)}
          onGone={() => {
            setDeleting(null);
            void resource.refresh();
          }}
          onDeleted={() => {
            setDeleting(null);
            setOpenId(null);
            announce(`User ${deleting.name} was deleted.`);
            void resource.refresh().then(() => document.querySelector<HTMLElement>('main h1')?.focus());
          }}
        />
      )}
    </>
  );
}
