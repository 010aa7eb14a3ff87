import { type ComponentChildren, Fragment, type TargetedMouseEvent } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiKeyView, RevocationView, RevokedApiKeysView, RevokeReason } from '#contract/console/api-keys.ts';
import { limits } from '#contract/limits.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { describeLineProblem, normalizeLine } from '#contract/text/text.ts';
import type { Result } from '../../../ipc.ts';
import { Expiry, KeyAccess } from '../../components/api-key.tsx';
import { AlreadyRemoved, ConfirmDanger } from '../../components/confirm.tsx';
import { Facts } from '../../components/details.tsx';
import { SelectField, TextField } from '../../components/form.tsx';
import { useList } from '../../components/list.tsx';
import { ShortTable } from '../../components/table.tsx';
import { Day, ExpiryDay, Moment, Time } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { hasExpired } from '../../state/api-keys.ts';
import { sum } from '../../state/calls.ts';
import { now } from '../../state/clock.ts';
import { isNotFound, type LookedUp, lookUpGone } from '../../state/failure-text.ts';
import { mapped } from '../../state/list.ts';

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
  const preview = useList<Preview>({
    key: `revocation/${apiKey.id}`,
    every: null,
    load: () => window.callkey.request('previewRevocation', { id: apiKey.id }),
    initial: { apiKey, queuedCalls: null },
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
          {reason.reason === 'leaked' && (
            <LastDay lastDay={view.lastDay} keys={[apiKey]} onClose={onClose}>
              <Replacement {...{ replacement, onReplace, onClose }} />
            </LastDay>
          )}
        </>
      )}
      countQueuedCalls={({ queuedCalls }) => queuedCalls}
      confirmation={null}
      verb="Revoke"
      verbing="Revoking…"
      isReady={isComplete(reason)}
      suggestsCancelling={reason.reason === 'leaked'}
      act={(cancelQueuedCalls) =>
        window.callkey.request('revokeApiKey', { id: apiKey.id, cancelQueuedCalls: cancelQueuedCalls ? 'true' : null, ...toReason(reason) })
      }
      lookUp={() => lookUpGone(window.callkey.request('previewRevocation', { id: apiKey.id }))}
      onDone={onRevoked}
      onAlreadyRemoved={onAlreadyRevoked}
      onClose={onClose}
    />
  );
}

/** Beyond this many keys, the user must type how many there are. */
const confirmAbove = 10;

type RevokeApiKeysProps = { apiKeys: readonly ApiKeyView[]; onRevoked: (view: RevokedApiKeysView) => void; onClose: () => void };

/** Says how many of the keys will stop working. It may not be all of them, because some may have expired. */
function describeEffect(apiKeys: readonly ApiKeyView[]): string {
  const expired = apiKeys.filter((key) => hasExpired(key, now.value)).length;
  if (expired === 0) return 'They’ll stop working immediately.';
  if (expired === apiKeys.length) return 'They’ve all already expired.';
  const active = counted(apiKeys.length - expired, 'key');
  return `${active} will stop working immediately; ${formatCount(expired)} ${expired === 1 ? 'has' : 'have'} already expired.`;
}

export function RevokeApiKeys({ apiKeys, onRevoked, onClose }: RevokeApiKeysProps) {
  const [reason, setReason] = useState<ReasonDraft>({ reason: '', note: '' });
  const count = formatCount(apiKeys.length);
  const preview = useList<BulkPreview>({
    key: `revocations/${apiKeys.map(({ id }) => id).join()}`,
    every: null,
    load: () => previewAll(apiKeys),
    initial: { queuedCalls: null },
  });
  const request = { ids: apiKeys.map(({ id }) => id), ...toReason(reason) };
  // The keys may be gone because the response to an earlier attempt was lost.
  if (apiKeys.length === 0) return <AlreadyRemoved onAlreadyRemoved={onClose} />;
  return (
    <ConfirmDanger
      title={`Revoke ${count} API keys?`}
      lead={`${describeEffect(apiKeys)} You can’t undo this.`}
      isWide="very"
      preview={preview}
      describe={({ lastDay }) => (
        <>
          <KeyTable apiKeys={apiKeys} />
          <ReasonFields draft={reason} onChange={setReason} />
          {reason.reason === 'leaked' && <LastDay lastDay={lastDay} keys={apiKeys} onClose={onClose} />}
        </>
      )}
      countQueuedCalls={({ queuedCalls }) => queuedCalls}
      suggestsCancelling={reason.reason === 'leaked'}
      confirmation={
        apiKeys.length > confirmAbove ? { label: `To revoke ${count} keys, type ${count}`, text: String(apiKeys.length) } : null
      }
      verb={`Revoke ${count} keys`}
      verbing="Revoking…"
      isReady={isComplete(reason)}
      problem={apiKeys.length > limits.revokedApiKeys ? `Select at most ${limits.revokedApiKeys} keys at a time.` : null}
      act={(cancelQueuedCalls) => window.callkey.request('revokeApiKeys', { ...request, cancelQueuedCalls })}
      lookUp={() => lookUpRevoked(request.ids)}
      onDone={onRevoked}
      onAlreadyRemoved={onClose}
      onClose={onClose}
    />
  );
}

/** What the previews of all keys say together. @property queuedCalls null before the core has counted them */
type BulkPreview = Partial<Pick<RevocationView, 'lastDay'>> & { queuedCalls: number | null };

async function previewAll(apiKeys: readonly ApiKeyView[]): Promise<Result<BulkPreview>> {
  const all = await Promise.all(apiKeys.map(({ id }) => window.callkey.request('previewRevocation', { id })));
  // A key that someone else has revoked in the meantime does nothing anymore.
  const failed = all.find((each) => !each.ok && !isNotFound(each.failure));
  if (failed && !failed.ok) return failed;
  const previews = all.flatMap((each) => (each.ok ? [each.value] : []));
  const uses = previews.flatMap(({ lastDay }) => lastDay.addresses).toSorted((a, b) => b.lastUsedAt.localeCompare(a.lastUsedAt));
  return {
    ok: true,
    value: {
      queuedCalls: sum(previews.map(({ queuedCalls }) => queuedCalls)),
      lastDay: {
        placed: sum(previews.map(({ lastDay }) => lastDay.placed)),
        addresses: uses.filter(({ address }, index) => uses.findIndex((use) => use.address === address) === index),
      },
    },
  };
}

/** The request revokes either all of the keys or none. */
async function lookUpRevoked(ids: readonly string[]): Promise<LookedUp<RevokedApiKeysView>> {
  const listed = await mapped(window.callkey.request('listApiKeys', {}), ({ apiKeys }) => new Set(apiKeys.map(({ id }) => id)));
  if (!listed.ok) return listed;
  const revoked = ids.filter((id) => !listed.value.has(id));
  return { ok: true, value: revoked.length === 0 ? null : { done: { revoked, gone: [] } } };
}

function KeyTable({ apiKeys }: { apiKeys: readonly ApiKeyView[] }) {
  const hasOwners = apiKeys.some(({ owner }) => owner !== undefined);
  return (
    <ShortTable
      head={[
        ['Key'],
        ...(hasOwners ? ([['Created by', 'text']] as const) : []),
        ['Created', 'day'],
        ['Last used', 'day'],
        ['Expiry', 'day'],
      ]}
      rows={apiKeys.map(({ id, name, owner, createdAt, lastUsedAt, expiresAt, expiryTimeZone }) => [
        <Fragment key={id}>
          <bdi>{name}</bdi>
          <span class="caption">{id}</span>
        </Fragment>,
        ...(hasOwners
          ? [
              <Fragment key="owner">
                {owner && <bdi>{owner.isYou ? 'You' : owner.name}</bdi>}
                {owner?.email !== undefined && <span class="caption">{owner.email}</span>}
              </Fragment>,
            ]
          : []),
        <Day key="created" at={createdAt} />,
        <Day key="used" at={lastUsedAt} />,
        expiresAt === null ? <span class="faint">No expiration</span> : <ExpiryDay at={expiresAt} zone={expiryTimeZone} />,
      ])}
    />
  );
}

/** The form's input. An empty reason means that none was chosen. */
type ReasonDraft = { reason: RevokeReason | ''; note: string };

const labels: Readonly<Record<RevokeReason, string>> = {
  leaked: 'It leaked',
  replaced: 'It was replaced',
  unused: 'It’s no longer needed',
  left: 'Someone left',
  other: 'Another reason',
};
const reasons = Object.entries(labels) as [RevokeReason, string][];

/** Whether the key can be revoked. The form asks for a reason, but doesn't require one, because revoking may be urgent. */
function isComplete({ reason, note }: ReasonDraft): boolean {
  return reason !== 'other' || noteProblem(note) === null;
}

function toReason({ reason, note }: ReasonDraft): { reason?: RevokeReason; note?: string } {
  if (reason === '') return {};
  return reason === 'other' ? { reason, note: normalizeLine(note, limits.revokeNote) } : { reason };
}

function noteProblem(note: string): string | null {
  const line = normalizeLine(note, limits.revokeNote);
  return line === '' ? 'Enter the reason.' : describeLineProblem(line, limits.revokeNote);
}

function ReasonFields({ draft, onChange }: { draft: ReasonDraft; onChange: (draft: ReasonDraft) => void }) {
  return (
    <>
      <SelectField
        label="Reason"
        hint="Shown on the Activity screen."
        value={draft.reason}
        options={[['', 'Not specified'], ...reasons]}
        onChange={(reason) => onChange({ ...draft, reason })}
      />
      {draft.reason === 'other' && (
        <TextField
          label="Why?"
          error={draft.note === '' ? null : noteProblem(draft.note)}
          value={draft.note}
          onInput={(note) => onChange({ ...draft, note })}
        />
      )}
    </>
  );
}

/** Goes to another address once the dialog is closed, because an open dialog prevents that. */
const follow = (onClose: () => void) => (event: TargetedMouseEvent<HTMLAnchorElement>) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const address = event.currentTarget.href;
  onClose();
  requestAnimationFrame(() => location.assign(address));
};

type LastDayProps = {
  /** Missing until it has loaded. */
  lastDay: RevocationView['lastDay'] | undefined;
  keys: readonly ApiKeyView[];
  onClose: () => void;
  children?: ComponentChildren;
};

function LastDay({ lastDay, keys, onClose, children }: LastDayProps) {
  const [first, ...others] = keys;
  return (
    <section>
      <h3>The last 24 hours</h3>
      {lastDay && (
        <>
          <p>
            {counted(lastDay.placed, 'call')} placed.{' '}
            {first && others.length === 0 && (
              <a href={formatAddress('calls', { apiKey: first.id })} onClick={follow(onClose)}>
                Show the key’s calls
              </a>
            )}
          </p>
          {lastDay.addresses.length > 0 && (
            <ul class="events stack">
              {lastDay.addresses.map(({ address, lastUsedAt }) => (
                <li key={address}>
                  <Moment at={lastUsedAt} />
                  <code>{address}</code>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
      {children}
    </section>
  );
}

type ReplacementProps = Pick<RevokeApiKeyProps, 'replacement' | 'onReplace' | 'onClose'>;

function Replacement({ replacement, onReplace, onClose }: ReplacementProps) {
  if (!replacement) {
    return (
      <p>
        The key has no replacement yet.{' '}
        <button type="button" onClick={onReplace}>
          Replace…
        </button>
      </p>
    );
  }
  return (
    <p>
      The key’s replacement keeps working:{' '}
      <a href={formatAddress('api-keys', { open: replacement.id })} onClick={follow(onClose)}>
        {replacement.name}
      </a>
      , created <Moment at={replacement.createdAt} />.
    </p>
  );
}
