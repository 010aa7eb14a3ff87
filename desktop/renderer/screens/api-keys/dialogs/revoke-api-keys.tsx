import { useState } from 'preact/hooks';
import type { ApiKeyView, RevokedApiKeysView } from '#contract/console/api-keys.ts';
import { limits } from '#contract/limits.ts';
import {
  AlreadyRemoved,
  CancelCalls,
  type Confirmation,
  ConfirmationField,
  DangerActions,
  isConfirmed,
} from '../../../components/forms/confirm-danger.tsx';
import { Dialog } from '../../../components/forms/dialog.tsx';
import { FormError } from '../../../components/forms/field.tsx';
import { useAction } from '../../../components/forms/use-action.ts';
import { Clip } from '../../../components/table/clip.tsx';
import { Day, ExpiryDay } from '../../../components/time.tsx';
import { now } from '../../../state/clock.ts';
import { describeFailure } from '../../../state/format/failure-text.ts';
import { formatNumber, pluralize } from '../../../state/format/format.ts';
import { hasExpired } from '../list/key-list.ts';
import { isComplete, type ReasonDraft, ReasonFields, toReason } from './revoke-reason.tsx';

/** Beyond this many keys, the user must type how many there are. */
const confirmAbove = 10;

type RevokeApiKeysProps = { apiKeys: readonly ApiKeyView[]; onRevoked: (view: RevokedApiKeysView) => void; onClose: () => void };

/** Says how many of the keys will stop working. It may not be all of them, because some may have expired. */
function describeEffect(apiKeys: readonly ApiKeyView[]): string {
  const expired = apiKeys.filter((key) => hasExpired(key, now.value)).length;
  if (expired === 0) return 'They’ll stop working immediately.';
  if (expired === apiKeys.length) return 'They’ve all already expired.';
  const active = pluralize(apiKeys.length - expired, 'key');
  return `${active} will stop working immediately; ${formatNumber(expired)} ${expired === 1 ? 'has' : 'have'} already expired.`;
}

/** Asks before revoking several keys together, and names each with its creator. The focus starts on Cancel. */
export function RevokeApiKeys({ apiKeys, onRevoked, onClose }: RevokeApiKeysProps) {
  const [cancelQueuedCalls, setCancel] = useState(false);
  const [typed, setTyped] = useState('');
  const [reason, setReason] = useState<ReasonDraft>({ reason: '', note: '' });
  const { isBusy, failure, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  const count = formatNumber(apiKeys.length);
  const confirmation: Confirmation | null =
    apiKeys.length > confirmAbove ? { label: `To revoke ${count} keys, type ${count}`, text: String(apiKeys.length) } : null;
  const isTooMany = apiKeys.length > limits.revokedApiKeys;
  const isReady = isConfirmed(confirmation, typed) && !isTooMany && isComplete(reason);
  // The keys may be gone because the response to an earlier attempt was lost.
  if (apiKeys.length === 0 && !isBusy) return <AlreadyRemoved onAlreadyRemoved={onClose} />;

  return (
    <Dialog
      title={`Revoke ${count} API keys?`}
      lead={`${describeEffect(apiKeys)} You can’t undo this.`}
      isAlert
      isWide="very"
      onDismiss={close}
    >
      <KeyTable apiKeys={apiKeys} />
      <ReasonFields draft={reason} onChange={setReason} />
      <CancelCalls calls={null} isChosen={cancelQueuedCalls} onChoose={setCancel} />
      {confirmation && !isTooMany && <ConfirmationField confirmation={confirmation} value={typed} onInput={setTyped} />}
      <FormError text={isTooMany ? `Select at most ${limits.revokedApiKeys} keys at a time.` : failure && describeFailure(failure)} />
      <DangerActions
        verb={`Revoke ${count} keys`}
        verbing="Revoking…"
        isBusy={isBusy}
        isReady={isReady}
        onCancel={close}
        onAct={() =>
          void run(
            () => window.callkey.request('revokeApiKeys', { ids: apiKeys.map(({ id }) => id), cancelQueuedCalls, ...toReason(reason) }),
            onRevoked,
          )
        }
      />
    </Dialog>
  );
}

function KeyTable({ apiKeys }: { apiKeys: readonly ApiKeyView[] }) {
  const hasOwners = apiKeys.some(({ owner }) => owner !== undefined);
  return (
    <div class="short-table">
      <table class="stacks">
        <colgroup>
          <col />
          {hasOwners && <col class="text" />}
          <col class="day" />
          <col class="day" />
          <col class="day" />
        </colgroup>
        <thead>
          <tr>
            <th scope="col">Key</th>
            {hasOwners && <th scope="col">Created by</th>}
            <th scope="col">Created</th>
            <th scope="col">Last used</th>
            <th scope="col">Expiry</th>
          </tr>
        </thead>
        <tbody>
          {apiKeys.map(({ id, name, owner, createdAt, lastUsedAt, expiresAt, expiryTimeZone }) => (
            <tr key={id}>
              <th scope="row">
                <Clip>{name}</Clip>
                <Clip class="caption">{id}</Clip>
              </th>
              {hasOwners && (
                <td data-label="Created by">
                  {owner && <Clip>{owner.isYou ? 'You' : owner.name}</Clip>}
                  {owner?.email !== undefined && <Clip class="caption">{owner.email}</Clip>}
                </td>
              )}
              <td data-label="Created">
                <Day at={createdAt} />
              </td>
              <td data-label="Last used">{lastUsedAt === null ? <span class="faint">Never</span> : <Day at={lastUsedAt} />}</td>
              <td data-label="Expiry">
                {expiresAt === null ? <span class="faint">No expiration</span> : <ExpiryDay at={expiresAt} zone={expiryTimeZone} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
