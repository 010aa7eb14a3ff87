import type { ApiKeyView } from '#contract/console.ts';
import { ConfirmDanger } from '../../../components/forms/confirm-danger.tsx';
import { useResource } from '../../../components/loadable.tsx';
import { Time } from '../../../components/time.tsx';
import { now } from '../../../state/clock.ts';
import { hasExpired } from '../key-list.ts';
import { KeyReach } from '../key-reach.tsx';

type RevokeApiKeyProps = {
  apiKey: ApiKeyView;
  onRevoked: () => void;
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
          {hasExpired(apiKey, now.value)
            ? 'has expired and no longer works. Revoking it removes it from the list. You can’t undo this.'
            : 'will stop working immediately. You can’t undo this.'}
        </>
      }
      preview={preview}
      describe={(view) => (
        <>
          <p>Last used: {view.apiKey.lastUsedAt === null ? 'Never' : <Time at={view.apiKey.lastUsedAt} />}</p>
          <KeyReach id={apiKey.id} />
        </>
      )}
      queuedCallsOf={(view) => view.queuedCalls}
      verb="Revoke"
      verbing="Revoking…"
      act={(cancelQueuedCalls) => window.callkey.revokeApiKey({ id: apiKey.id, cancelQueuedCalls })}
      onDone={onRevoked}
      onGone={onGone}
      onClose={onClose}
    />
  );
}
