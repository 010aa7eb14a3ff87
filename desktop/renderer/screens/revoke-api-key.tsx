import type { ApiKeyView } from '#contract/console.ts';
import { ConfirmDanger } from '../components/confirm-danger.tsx';
import { useResource } from '../components/loadable.tsx';
import { Time } from '../components/time.tsx';
import { neighbourOf } from './api-key-table.tsx';

type RevokeApiKeyProps = {
  apiKey: ApiKeyView;
  /** @param nextId the key whose row gets the focus */
  onRevoked: (nextId: string | null) => void;
  onGone: () => void;
  onClose: () => void;
};

export function RevokeApiKey({ apiKey, onRevoked, onGone, onClose }: RevokeApiKeyProps) {
  const preview = useResource(() => window.callkey.previewRevocation(apiKey.id));
  const { owner } = apiKey;
  return (
    <ConfirmDanger
      title="Revoke API Key?"
      lead={
        <>
          <strong>{apiKey.name}</strong>
          {owner && !owner.isYou && (
            <>
              , created by <strong>{owner.name}</strong>,
            </>
          )}{' '}
          stops working at its very next request. You cannot undo this.
        </>
      }
      preview={preview}
      describe={(view) => <p>Last used: {view.apiKey.lastUsedAt === null ? 'Never' : <Time at={view.apiKey.lastUsedAt} />}</p>}
      queuedCallsOf={(view) => view.queuedCalls}
      verb="Revoke"
      verbing="Revoking …"
      act={(cancelQueuedCalls) => window.callkey.revokeApiKey({ id: apiKey.id, cancelQueuedCalls })}
      onDone={() => onRevoked(neighbourOf(apiKey.id))}
      onGone={onGone}
      onClose={onClose}
    />
  );
}
