import { useState } from 'preact/hooks';
import type { SessionView, UserView } from '#contract/console.ts';
import { folded } from '#contract/text.ts';
import { Icon } from '../components/icons.tsx';
import { Empty, Loadable, useResource } from '../components/loadable.tsx';
import { Once, SecretDialog } from '../components/secret.tsx';
import { Time } from '../components/time.tsx';
import { announce } from '../state/announcement.ts';
import { number, placeOf, plural, userTypeWords } from '../state/words.ts';
import { AddPerson } from './add-person.tsx';
import { DeletePerson } from './delete-person.tsx';

type Added = { user: UserView; password: Once };

/** The users of the viewer's scope. */
export function People({ session }: { session: SessionView }) {
  const resource = useResource(() => window.callkey.listUsers());
  const [isAdding, setAdding] = useState(false);
  const [added, setAdded] = useState<Added | null>(null);
  const [deleting, setDeleting] = useState<UserView | null>(null);

  return (
    <>
      <div class="title-row">
        <h1 tabIndex={-1}>People</h1>
        <button type="button" class="primary" onClick={() => setAdding(true)}>
          <Icon name="plus" /> Add Person
        </button>
      </div>
      <Loadable resource={resource} what="the people">
        {({ users }) =>
          users.length === 0 ? (
            <Empty title="Nobody here yet">
              <p>Add the first person, who can then sign in and create keys.</p>
            </Empty>
          ) : (
            <PeopleList users={users} session={session} onDelete={setDeleting} />
          )
        }
      </Loadable>
      {isAdding && (
        <AddPerson
          session={session}
          onClose={() => setAdding(false)}
          onAdded={(user, password) => {
            setAdding(false);
            setAdded({ user, password: new Once(password) });
            void resource.refresh();
          }}
        />
      )}
      {added && (
        <SecretDialog
          title="Hand over the password"
          lead={
            <>
              <strong>{added.user.name}</strong> signs in with <strong>{added.user.email}</strong> and this password, and then chooses
              another. It is shown this once.
            </>
          }
          label="One-time password"
          secret={added.password}
          lost="It cannot be shown again: the operator of the core can make another one."
          onClose={() => {
            setAdded(null);
            announce(`${added.user.name} is added.`);
          }}
        />
      )}
      {deleting && (
        <DeletePerson
          user={deleting}
          onClose={() => setDeleting(null)}
          onGone={() => {
            setDeleting(null);
            void resource.refresh();
          }}
          onDeleted={() => {
            setDeleting(null);
            announce(`${deleting.name} is deleted.`);
            void resource.refresh().then(() => document.querySelector<HTMLElement>('main h1')?.focus());
          }}
        />
      )}
    </>
  );
}

type PeopleListProps = { users: readonly UserView[]; session: SessionView; onDelete: (user: UserView) => void };

function PeopleList({ users, session, onDelete }: PeopleListProps) {
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
        <Empty title="Nobody matches" />
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
                <th scope="col">Added</th>
                <th scope="col">
                  <span class="visually-hidden">Delete</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {found.map((user) => (
                <Person key={user.id} user={user} isYou={user.id === session.viewer.id} onDelete={onDelete} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="pager" role="status">
        {plural(found.length, 'person', 'people')}
      </p>
    </>
  );
}

function Person({ user, isYou, onDelete }: { user: UserView; isYou: boolean; onDelete: (user: UserView) => void }) {
  const place = placeOf(user);
  return (
    <tr>
      <th scope="row">
        <span class="name">
          {user.name} {isYou && <span class="tag you">You</span>}
        </span>
        <span class="caption">{user.email}</span>
      </th>
      <td>{userTypeWords[user.userType]}</td>
      <td>{place === '' ? <span class="faint">–</span> : place}</td>
      <td>{number(user.apiKeys)}</td>
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
