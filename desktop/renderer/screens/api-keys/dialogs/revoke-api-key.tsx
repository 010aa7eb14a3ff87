import type { ApiKeyView } from '#contract/console.ts';
import { Facts } from '../../../components/details.tsx';
import { ConfirmDanger } from '../../../components/forms/confirm-danger.tsx';
import { useResource } from '../../../components/loadable.tsx';
import { Moment, Time } from '../../../components/time.tsx';
import { now } from '../../../state/clock.ts';
import { KeyAccess } from '../key-access.tsx';
import { Expiry } from '../list/api-key-table.tsx';
import { hasExpired } from '../list/key-list.ts';

type RevokeApiKeyProps = {
  apiKey: ApiKeyView;
  onRevoked: () => void;
  onGone: () => void;
  onClose: () => void;
};

export function RevokeApiKey({ apiKey, onRevoked, onGone, onClose }: RevokeApiKeyProps) {
  const preview = useResource(() => window.callkey.request('previewRevocation', { id: apiKey.id }));
  const { owner } = apiKey;
  return (
    <ConfirmDanger
      title="Revoke API Key?"
      lead={
        <>
          <strong>{apiKey.name}</strong>
          {owner && !owner.isYou && (
            <>
              , created by <strong>{owner.name}</strong>
              {owner.email !== undefined && ` (${owner.email})`},
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
          <Facts
            facts={[
              ['Created', <Moment key="created" at={apiKey.createdAt} />],
              ['Last used', view.apiKey.lastUsedAt === null ? 'Never' : <Time key="used" at={view.apiKey.lastUsedAt} />],
              ['Expiry', <Expiry key="expiry" apiKey={apiKey} />],
              ['ID', <code key="id">{apiKey.id}</code>],
            ]}
          />
          <KeyAccess id={apiKey.id} />
        </>
      )}
      queuedCallsOf={(view) => view.queuedCalls}
      verb="Revoke"
      verbing="Revoking…"
      act={(cancelQueuedCalls) =>
        window.callkey.request('revokeApiKey', { id: apiKey.id, cancelQueuedCalls: cancelQueuedCalls ? 'true' : null })
      }
      onDone={onRevoked}
      onGone={onGone}
      onClose={onClose}
    />
  );
}
