import { useState } from 'preact/hooks';
import type { ApiKeyView, RevocationView } from '#contract/console.ts';
import type { Failure } from '../../ipc.ts';
import { Dialog } from '../components/dialog.tsx';
import { FormError } from '../components/field.tsx';
import { Loadable, useResource } from '../components/loadable.tsx';
import { Time } from '../components/time.tsx';
import { ask } from '../state/session.ts';
import { plural, wordsOf } from '../state/words.ts';
import { neighbourOf } from './api-key-table.tsx';

type RevokeApiKeyProps = {
  apiKey: ApiKeyView;
  /** @param nextId the key in whose row to go on */
  onRevoked: (nextId: string | null) => void;
  /** The key is there no more: somebody else was faster. */
  onGone: () => void;
  onClose: () => void;
};

export function RevokeApiKey({ apiKey, onRevoked, onGone, onClose }: RevokeApiKeyProps) {
  const preview = useResource(() => window.callkey.previewRevocation(apiKey.id));
  const [cancelQueuedCalls, setCancel] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const isGone = [failure, preview.state.value.failure].some((each) => each?.kind === 'refused' && each.code === 'not-found');

  async function revoke(): Promise<void> {
    if (isBusy || !preview.state.value.value) return;
    setBusy(true);
    const nextId = neighbourOf(apiKey.id);
    const result = await ask(window.callkey.revokeApiKey({ id: apiKey.id, cancelQueuedCalls }));
    setBusy(false);
    if (result.ok) onRevoked(nextId);
    else setFailure(result.failure);
  }

  if (isGone) {
    return (
      <Dialog title="This key is gone" isAlert onDismiss={onGone}>
        <p>
          <strong>{apiKey.name}</strong> has been revoked already.
        </p>
        <div class="actions">
          <button type="button" class="primary" autofocus onClick={onGone}>
            OK
          </button>
        </div>
      </Dialog>
    );
  }
  const owner = apiKey.owner;
  return (
    <Dialog title="Revoke API Key?" isAlert onDismiss={onClose}>
      <p>
        <strong>{apiKey.name}</strong>
        {owner && !owner.isYou && (
          <>
            , created by <strong>{owner.name}</strong>,
          </>
        )}{' '}
        will be refused from its very next request. This cannot be undone.
      </p>
      <Loadable resource={preview} what="what this touches">
        {(view) => <Touched view={view} cancelQueuedCalls={cancelQueuedCalls} onCancelQueuedCalls={setCancel} />}
      </Loadable>
      <FormError text={failure && wordsOf(failure)} />
      <div class="actions">
        <button type="button" autofocus onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="danger" aria-disabled={isBusy || !preview.state.value.value} onClick={() => void revoke()}>
          {isBusy ? 'Revoking …' : 'Revoke'}
        </button>
      </div>
    </Dialog>
  );
}

type TouchedProps = { view: RevocationView; cancelQueuedCalls: boolean; onCancelQueuedCalls: (cancel: boolean) => void };

function Touched({ view: { apiKey, queuedCalls }, cancelQueuedCalls, onCancelQueuedCalls }: TouchedProps) {
  return (
    <>
      <p>Last used: {apiKey.lastUsedAt === null ? 'Never' : <Time at={apiKey.lastUsedAt} />}</p>
      {queuedCalls === 0 ? (
        <p class="hint">No calls of this key are waiting to be dialed.</p>
      ) : (
        <div class="check">
          <input
            id="cancel-calls"
            type="checkbox"
            checked={cancelQueuedCalls}
            onChange={({ currentTarget }) => onCancelQueuedCalls(currentTarget.checked)}
          />
          <label for="cancel-calls">Also cancel {plural(queuedCalls, 'call')} not yet dialed</label>
          <p class="hint">Otherwise they are still dialed: a revoke stops new requests only.</p>
        </div>
      )}
    </>
  );
}
