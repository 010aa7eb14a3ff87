import type { DeletionView, UserView } from '#contract/console.ts';
import { ConfirmDanger } from '../components/confirm-danger.tsx';
import { useResource } from '../components/loadable.tsx';
import { Time } from '../components/time.tsx';
import { plural } from '../state/words.ts';

type DeletePersonProps = { user: UserView; onDeleted: () => void; onGone: () => void; onClose: () => void };

/** Shows which keys die with a user, and when each was last used, before anything is done. */
export function DeletePerson({ user, onDeleted, onGone, onClose }: DeletePersonProps) {
  const preview = useResource(() => window.callkey.previewDeletion(user.id));
  return (
    <ConfirmDanger
      title={`Delete ${user.name}?`}
      lead={
        <>
          <strong>{user.email}</strong> is signed out at once and cannot sign in any more. This cannot be undone.
        </>
      }
      isWide
      preview={preview}
      describe={(view) => <Dying view={view} />}
      queuedCallsOf={({ apiKeys }) => apiKeys.reduce((sum, key) => sum + key.queuedCalls, 0)}
      verb="Delete"
      verbing="Deleting …"
      act={(cancelQueuedCalls) => window.callkey.deleteUser({ id: user.id, cancelQueuedCalls })}
      onDone={onDeleted}
      onGone={onGone}
      onClose={onClose}
    />
  );
}

function Dying({ view: { apiKeys, sessions } }: { view: DeletionView }) {
  return (
    <>
      {apiKeys.length === 0 ? (
        <p>No API key dies with this user.</p>
      ) : (
        <>
          <p>
            <strong>{plural(apiKeys.length, 'API key stops', 'API keys stop')} working</strong> at the next request:
          </p>
          <div class="table short">
            <table>
              <thead>
                <tr>
                  <th scope="col">Key</th>
                  <th scope="col">Last used</th>
                  <th scope="col">Calls not yet dialed</th>
                </tr>
              </thead>
              <tbody>
                {apiKeys.map((key) => (
                  <tr key={key.id}>
                    <th scope="row">{key.name}</th>
                    <td>{key.lastUsedAt === null ? <span class="faint">Never</span> : <Time at={key.lastUsedAt} />}</td>
                    <td>{key.queuedCalls}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
      <p class="hint">{sessions === 0 ? 'Not signed in anywhere.' : `Signed in ${plural(sessions, 'time')} right now.`}</p>
    </>
  );
}
