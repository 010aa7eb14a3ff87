import { useState } from 'preact/hooks';
import type { SessionView, UserView } from '#contract/console.ts';
import { folded } from '#contract/text.ts';
import { Icon } from '../components/icons.tsx';
import { Empty, Loadable, useResource } from '../components/loadable.tsx';
import { OneTimeSecret, SecretDialog } from '../components/secret.tsx';
import { Time } from '../components/time.tsx';
import { announce } from '../state/announcement.ts';
import { formatNumber, pluralize } from '../state/format.ts';
import { membershipOf, userTypeLabels } from '../state/labels.ts';
import type { ScreenProps } from '../state/navigation.ts';
import { CreateUser } from './create-user.tsx';
import { DeleteUser } from './delete-user.tsx';

type Created = { user: UserView; password: OneTimeSecret };

/** The users of the viewer's scope. */
export function Users({ session, title }: ScreenProps) {
  const resource = useResource(() => window.callkey.listUsers());
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<Created | null>(null);
  const [deleting, setDeleting] = useState<UserView | null>(null);

  return (
    <>
      <div class="title-row">
        <h1 tabIndex={-1}>{title}</h1>
        <button type="button" class="primary" onClick={() => setCreating(true)}>
          <Icon name="plus" /> Create User
        </button>
      </div>
      <Loadable resource={resource} what="the users">
        {({ users }) =>
          users.length === 0 ? (
            <Empty title="No users yet">
              <p>Create the first user, who can then sign in and create keys.</p>
            </Empty>
          ) : (
            <UserList users={users} session={session} onDelete={setDeleting} />
          )
        }
      </Loadable>
      {isCreating && (
        <CreateUser
          session={session}
          onClose={() => setCreating(false)}
          onCreated={(user, password) => {
            setCreating(false);
            setCreated({ user, password: new OneTimeSecret(password) });
            void resource.refresh();
          }}
        />
      )}
      {created && (
        <SecretDialog
          title="Hand over the password"
          lead={
            <>
              <strong>{created.user.name}</strong> signs in with <strong>{created.user.email}</strong> and this password, and then chooses
              another. The console shows it only now.
            </>
          }
          label="One-time password"
          secret={created.password}
          lost="Nobody can show it again. Only the operator of the core can create another one."
          onClose={() => {
            setCreated(null);
            announce(`User ${created.user.name} was created.`);
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
            announce(`User ${deleting.name} was deleted.`);
            void resource.refresh().then(() => document.querySelector<HTMLElement>('main h1')?.focus());
          }}
        />
      )}
    </>
  );
}

type UserListProps = { users: readonly UserView[]; session: SessionView; onDelete: (user: UserView) => void };

function UserList({ users, session, onDelete }: UserListProps) {
  const [search, setSearch] = useState('');
  const wanted = folded(search.trim());
  const found = users.filter(({ name, email }) => folded(`${name} ${email}`).includes(wanted));
  return (
    <>
      <search class="toolbar">
        <label class="grow">
          <span class="visually-hidden">Search by name or e-mail</span>
          <input
            type="search"
            placeholder="Search by name or e-mail"
            value={search}
            onInput={({ currentTarget }) => setSearch(currentTarget.value)}
          />
        </label>
      </search>
      {found.length === 0 ? (
        <Empty title="No user matches" />
      ) : (
        <div class="table">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Type</th>
                <th scope="col">Belongs to</th>
                <th scope="col">API keys</th>
                <th scope="col">Last sign-in</th>
                <th scope="col">Created</th>
                <th scope="col">
                  <span class="visually-hidden">Delete</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {found.map((user) => (
                <UserRow key={user.id} user={user} isYou={user.id === session.viewer.id} onDelete={onDelete} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="pager" role="status">
        {pluralize(found.length, 'user')}
      </p>
    </>
  );
}

function UserRow({ user, isYou, onDelete }: { user: UserView; isYou: boolean; onDelete: (user: UserView) => void }) {
  const place = membershipOf(user);
  return (
    <tr>
      <th scope="row">
        <span class="name">
          {user.name} {isYou && <span class="tag you">You</span>}
        </span>
        <span class="caption">{user.email}</span>
      </th>
      <td>{userTypeLabels[user.userType]}</td>
      <td>{place === '' ? <span class="faint">–</span> : place}</td>
      <td>{formatNumber(user.apiKeys)}</td>
      <td>{user.lastSignInAt === null ? <span class="faint">Never</span> : <Time at={user.lastSignInAt} />}</td>
      <td>
        <Time at={user.createdAt} />
      </td>
      <td class="row-action">
        {!isYou && (
          <button type="button" class="quiet icon-only" aria-label={`Delete ${user.name}`} onClick={() => onDelete(user)}>
            <Icon name="trash" />
          </button>
        )}
      </td>
    </tr>
  );
}
