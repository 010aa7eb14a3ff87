import type { TargetedMouseEvent } from 'preact';
import type { ApiKeyView, RevocationView, RevokeReason } from '#contract/console/api-keys.ts';
import { limits } from '#contract/limits.ts';
import { describeLineProblem, normalizeLine } from '#contract/text/text.ts';
import { Field } from '../../../components/forms/field.tsx';
import { TextField } from '../../../components/forms/text-field.tsx';
import { Moment } from '../../../components/time.tsx';
import { formatAddress } from '../../../state/address/addresses.ts';
import { pluralize } from '../../../state/format/format.ts';

/** The form's input. An empty reason means that none was chosen. */
export type ReasonDraft = { reason: RevokeReason | ''; note: string };

const labels: Readonly<Record<RevokeReason, string>> = {
  leaked: 'It leaked',
  replaced: 'It was replaced',
  unused: 'It’s no longer needed',
  left: 'Someone left',
  other: 'Another reason',
};
const reasons = Object.entries(labels) as [RevokeReason, string][];

/** Whether the key can be revoked. The form asks for a reason, but doesn't require one, because revoking may be urgent. */
export function isComplete({ reason, note }: ReasonDraft): boolean {
  return reason !== 'other' || noteProblem(note) === null;
}

export function toReason({ reason, note }: ReasonDraft): { reason?: RevokeReason; note?: string } {
  if (reason === '') return {};
  return reason === 'other' ? { reason, note: normalizeLine(note, limits.revokeNote) } : { reason };
}

function noteProblem(note: string): string | null {
  const line = normalizeLine(note, limits.revokeNote);
  return line === '' ? 'Enter the reason.' : describeLineProblem(line, limits.revokeNote);
}

/** Asks why keys are revoked. */
export function ReasonFields({ draft, onChange }: { draft: ReasonDraft; onChange: (draft: ReasonDraft) => void }) {
  return (
    <>
      <Field label="Reason" hint="Shown on the Activity screen.">
        {(binding) => (
          <select
            {...binding}
            value={draft.reason}
            onChange={({ currentTarget }) =>
              onChange({ ...draft, reason: reasons.find(([reason]) => reason === currentTarget.value)?.[0] ?? '' })
            }
          >
            <option value="">Not specified</option>
            {reasons.map(([reason, label]) => (
              <option key={reason} value={reason}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      {draft.reason === 'other' && (
        <TextField
          label="Why?"
          error={draft.note === '' ? null : noteProblem(draft.note)}
          type="text"
          autocomplete="off"
          value={draft.note}
          onInput={(note) => onChange({ ...draft, note })}
        />
      )}
    </>
  );
}

type LastDayProps = {
  /** Without `lastDay` until it has loaded. */
  view: Pick<RevocationView, 'apiKey'> & Partial<Pick<RevocationView, 'lastDay'>>;
  replacement: ApiKeyView | null;
  onReplace: () => void;
  onClose: () => void;
};

/** Shows what a leaked key has done in the last 24 hours, and which key replaces it. */
export function LastDay({ view: { apiKey, lastDay }, replacement, onReplace, onClose }: LastDayProps) {
  const follow = (event: TargetedMouseEvent<HTMLAnchorElement>) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const address = event.currentTarget.href;
    onClose();
    // Waits until the dialog is closed, because an open dialog prevents going to another address.
    requestAnimationFrame(() => location.assign(address));
  };
  return (
    <section>
      <h3>The last 24 hours</h3>
      {lastDay && (
        <>
          <p>
            {pluralize(lastDay.placed, 'call')} placed.{' '}
            <a href={formatAddress('calls', { apiKey: apiKey.id })} onClick={follow}>
              Show the key’s calls
            </a>
          </p>
          {lastDay.addresses.length > 0 && (
            <ul class="events">
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
      {replacement ? (
        <p>
          The key’s replacement keeps working:{' '}
          <a href={formatAddress('api-keys', { open: replacement.id })} onClick={follow}>
            {replacement.name}
          </a>
          , created <Moment at={replacement.createdAt} />.
        </p>
      ) : (
        <p>
          The key has no replacement yet.{' '}
          <button type="button" onClick={onReplace}>
            Replace…
          </button>
        </p>
      )}
    </section>
  );
}
