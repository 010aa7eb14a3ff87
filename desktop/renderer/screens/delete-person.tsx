import { useState } from 'preact/hooks';
import type { DeletionView, UserView } from '#contract/console.ts';
import type { Failure } from '../../ipc.ts';
import { Dialog } from '../components/dialog.tsx';
import { FormError } from '../components/field.tsx';
import { Loadable, useResource } from '../components/loadable.tsx';
import { Time } from '../components/time.tsx';
import { ask } from '../state/session.ts';
import { plural, wordsOf } from '../state/words.ts';

type DeletePersonProps = { user: UserView; onDeleted: () => void; onClose: () => void };

/** Shows which keys die with a user, and when each was last used, before anything is done. */
export function DeletePerson({ user, onDeleted, onClose }: DeletePersonProps) {
  const preview = useResource(() => window.callkey.previewDeletion(user.id));
  const [cancelQueuedCalls, setCancel] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);

  async function remove(): Promise<void> {
    if (isBusy || !preview.state.value.value) return;
    setBusy(true);
    const result = await ask(window.callkey.deleteUser({ id: user.id, cancelQueuedCalls }));
    setBusy(false);
    if (result.ok) onDeleted();
    else setFailure(result.failure);
  }

  return (
    <Dialog title={`Delete ${user.name}?`} isAlert isWide onDismiss={onClose}>
      <p>
        <strong>{user.email}</strong> is signed out at once and cannot sign in any more. This cannot be undone.
      </p>
      <Loadable resource={preview} what="what this touches">
        {(view) => <Dying view={view} cancelQueuedCalls={cancelQueuedCalls} onCancelQueuedCalls={setCancel} />}
      </Loadable>
      <FormError text={failure && wordsOf(failure)} />
      <div class="actions">
        <button type="button" autofocus onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="danger" aria-disabled={isBusy || !preview.state.value.value} onClick={() => void remove()}>
          {isBusy ? 'Deleting …' : 'Delete'}
        </button>
      </div>
    </Dialog>
  );
}

type DyingProps = { view: DeletionView; cancelQueuedCalls: boolean; onCancelQueuedCalls: (cancel: boolean) => void };

function Dying({ view: { apiKeys, sessions }, cancelQueuedCalls, onCancelQueuedCalls }: DyingProps) {
  const queued = apiKeys.reduce((sum, key) => sum + key.queuedCalls, 0);
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
      {queued > 0 && (
        <div class="check">
          <input
            id="cancel-calls"
            type="checkbox"
            checked={cancelQueuedCalls}
            onChange={({ currentTarget }) => onCancelQueuedCalls(currentTarget.checked)}
          />
          <label for="cancel-calls">Also cancel {plural(queued, 'call')} not yet dialed</label>
        </div>
      )}
    </>
  );
}
