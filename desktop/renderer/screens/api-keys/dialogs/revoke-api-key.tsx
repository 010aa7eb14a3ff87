import { useState } from 'preact/hooks';
import type { ApiKeyView, RevocationView } from '#contract/console/api-keys.ts';
import { Facts } from '../../../components/details.tsx';
import { ConfirmDanger } from '../../../components/forms/confirm-danger.tsx';
import { useResource } from '../../../components/loadable.tsx';
import { Moment, Time } from '../../../components/time.tsx';
import { now } from '../../../state/clock.ts';
import { KeyAccess } from '../key-access.tsx';
import { Expiry } from '../list/api-key-table.tsx';
import { hasExpired } from '../list/key-list.ts';
import { isComplete, LastDay, type ReasonDraft, ReasonFields, toReason } from './revoke-reason.tsx';

type RevokeApiKeyProps = {
  apiKey: ApiKeyView;
  /** A newer key with the same name, if any. */
  replacement: ApiKeyView | null;
  onReplace: () => void;
  onRevoked: () => void;
  onAlreadyRevoked: () => void;
  onClose: () => void;
};

/** @property queuedCalls null before the core has counted them */
type Preview = Pick<RevocationView, 'apiKey'> & Partial<Pick<RevocationView, 'lastDay'>> & { queuedCalls: number | null };

export function RevokeApiKey({ apiKey, replacement, onReplace, onRevoked, onAlreadyRevoked, onClose }: RevokeApiKeyProps) {
  const [reason, setReason] = useState<ReasonDraft>({ reason: replacement ? 'replaced' : '', note: '' });
  // Until the preview arrives, the dialog shows the list's data, so that nothing in it moves.
  const preview = useResource<Preview>(() => window.callkey.request('previewRevocation', { id: apiKey.id }), '', {
    apiKey,
    queuedCalls: null,
  });
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
          <ReasonFields draft={reason} onChange={setReason} />
          {reason.reason === 'leaked' && <LastDay view={view} replacement={replacement} onReplace={onReplace} onClose={onClose} />}
        </>
      )}
      countQueuedCalls={(view) => view.queuedCalls}
      verb="Revoke"
      verbing="Revoking…"
      isReady={isComplete(reason)}
      suggestsCancelling={reason.reason === 'leaked'}
      act={(cancelQueuedCalls) =>
        window.callkey.request('revokeApiKey', { id: apiKey.id, cancelQueuedCalls: cancelQueuedCalls ? 'true' : null, ...toReason(reason) })
      }
      onDone={onRevoked}
      onAlreadyRemoved={onAlreadyRevoked}
      onClose={onClose}
    />
  );
}
