import type { DeletionView, UserView } from '#contract/console.ts';
import { Clip } from '../components/clip.tsx';
import { ConfirmDanger } from '../components/confirm-danger.tsx';
import { useResource } from '../components/loadable.tsx';
import { Time } from '../components/time.tsx';
import { pluralize } from '../state/format.ts';

/** Beyond this many keys, a deletion must be meant. */
const askedFrom = 10;

type DeleteUserProps = { user: UserView; onDeleted: () => void; onGone: () => void; onClose: () => void };

/** Before a user is deleted, shows which keys stop working and when each was last used. */
export function DeleteUser({ user, onDeleted, onGone, onClose }: DeleteUserProps) {
  const preview = useResource(() => window.callkey.previewDeletion(user.id));
  return (
    <ConfirmDanger
      title={`Delete ${user.name}?`}
      lead={
        <>
          <strong>{user.email}</strong> is signed out at once and can no longer sign in. You cannot undo this.
        </>
      }
      isWide
      preview={preview}
      describe={(view) => <DeletionPreview view={view} />}
      queuedCallsOf={({ apiKeys }) => apiKeys.reduce((sum, key) => sum + key.queuedCalls, 0)}
      proofOf={({ apiKeys }) =>
        apiKeys.length > askedFrom
          ? { label: `To delete ${pluralize(apiKeys.length, 'key')}, type the e-mail address`, text: user.email }
          : null
      }
      verb="Delete"
      verbing="Deleting …"
      act={(cancelQueuedCalls) => window.callkey.deleteUser({ id: user.id, cancelQueuedCalls })}
      onDone={onDeleted}
      onGone={onGone}
      onClose={onClose}
    />
  );
}

function DeletionPreview({ view: { apiKeys, sessions } }: { view: DeletionView }) {
  return (
    <>
      {apiKeys.length === 0 ? (
        <p>This user has no API key.</p>
      ) : (
        <>
          <p>
            <strong>{pluralize(apiKeys.length, 'API key stops', 'API keys stop')} working</strong> at their next request:
          </p>
          <div class="short-table">
            <table>
              <colgroup>
                <col />
                <col class="day" />
                <col class="moment" />
              </colgroup>
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
                    <th scope="row">
                      <Clip>{key.name}</Clip>
                    </th>
                    <td>{key.lastUsedAt === null ? <span class="faint">Never</span> : <Time at={key.lastUsedAt} />}</td>
                    <td>{key.queuedCalls}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
      <p class="hint">
        {sessions === 0 ? 'Not signed in now.' : `Signed in now${sessions === 1 ? '' : `, ${pluralize(sessions, 'time')}`}.`}
      </p>
    </>
  );
}
