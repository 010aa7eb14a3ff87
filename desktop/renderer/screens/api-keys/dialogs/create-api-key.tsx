import { useEffect, useState } from 'preact/hooks';
import type { ApiKeyView, CreatedApiKeyView } from '#contract/console/api-keys.ts';
import type { SessionView } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import { countCodePoints, describeLineProblem, normalizeLine } from '#contract/text/text.ts';
import type { Result } from '../../../../ipc.ts';
import { Dialog } from '../../../components/forms/dialog.tsx';
import { FormError, focusFirstInvalid } from '../../../components/forms/field.tsx';
import { FormActions } from '../../../components/forms/form-actions.tsx';
import { TextField } from '../../../components/forms/text-field.tsx';
import { useAction } from '../../../components/forms/use-action.ts';
import { warn } from '../../../state/announcement.ts';
import { now, ownZone, readClock } from '../../../state/clock.ts';
import { describeFailure, fieldError, generalError, isInDoubt } from '../../../state/format/failure-text.ts';
import { formatNumber } from '../../../state/format/format.ts';
import { describeKeyAccess } from '../../../state/format/labels.ts';
import { type ExpirationDraft, resolve, toExpirationChoice } from '../expiration.ts';
import { KeyAccess } from '../key-access.tsx';
import { summarizeLimits } from '../key-limits.ts';
import { isNameTaken } from '../list/key-list.ts';
import { ExpirationFields } from './expiration-fields.tsx';
import type { NewApiKey } from './save-key-value.tsx';

type CreateApiKeyProps = {
  session: SessionView;
  /** The listed keys, whose names are already in use. */
  listed: readonly ApiKeyView[];
  /** The key that the new one replaces. */
  replaced: ApiKeyView | null;
  onCreated: (view: NewApiKey) => void;
  /** Called if the core didn't respond, so the key may have been created. */
  onMaybeCreated: () => void;
  onClose: () => void;
};

export function CreateApiKey({ session, listed, replaced, onCreated, onMaybeCreated, onClose }: CreateApiKeyProps) {
  const [name, setName] = useState(replaced?.name ?? '');
  const [chosen, choose] = useState<Omit<ExpirationDraft, 'timeZone'> & { timeZone?: string }>({
    choice: replaced ? toExpirationChoice(replaced) : '',
    date: '',
  });
  // Follows the machine's time zone, unless the user chooses another one.
  const draft: ExpirationDraft = { timeZone: ownZone.value, ...chosen };
  useState(readClock);
  const [copiesLimits, setCopiesLimits] = useState(true);
  const [hasTried, setTried] = useState(false);
  const { isBusy, failure, form, clearError, run, unlessBusy } = useAction();

  const line = normalizeLine(name, limits.apiKeyName);
  const length = countCodePoints(line);
  // Computed again every minute, because the range and the date of every choice change at midnight.
  const resolved = resolve(draft, now.value);
  const nameError = (hasTried || line !== '' ? nameProblem(line) : null) ?? fieldError(failure, 'name');
  const expirationError = fieldError(failure, 'expiration') ?? fieldError(failure, 'timeZone');
  const problemAt = (field: 'choice' | 'date') =>
    (!resolved.ok && resolved.field === field && (hasTried || (field === 'date' && draft.date !== '')) ? resolved.problem : null) ??
    (field === (draft.choice === 'custom' ? 'date' : 'choice') ? expirationError : null);

  useEffect(() => {
    if (isInDoubt(failure)) onMaybeCreated();
  }, [failure]);

  function submit(event: Event): void {
    event.preventDefault();
    setTried(true);
    if (nameProblem(line) !== null || !resolved.ok) {
      focusFirstInvalid(form.current);
      return;
    }
    const { expiration } = resolved;
    const create = () => window.callkey.request('createApiKey', { name, expiration, timeZone: draft.timeZone });
    void run<NewApiKey>(copiesLimits && replaced ? () => createLimited(create, replaced) : create, onCreated, onCreatedAfterClose);
  }
  const close = unlessBusy(onClose);

  return (
    <Dialog
      title={replaced ? 'Replace API key' : 'Create API key'}
      lead={
        replaced && (
          <>
            Create a replacement for <strong>{replaced.name}</strong> and update your integration with its value. The old key keeps working
            until you revoke it.
          </>
        )
      }
      onDismiss={close}
    >
      {/* The two keys' access differs if someone else created the old key. */}
      {replaced && <KeyAccess id={replaced.id} subject="The old key" />}
      <form ref={form} onSubmit={submit} noValidate>
        <TextField
          label="Name"
          error={nameError}
          hint="Name the system that will use the key. The name is the only way to tell your keys apart."
          warning={
            !replaced && isNameTaken(listed, line)
              ? 'A key with this name already exists. The name is the only way to tell keys apart.'
              : null
          }
          aside={
            <span class={length > limits.apiKeyName ? 'counter over' : 'counter'}>
              {formatNumber(length)} / {formatNumber(limits.apiKeyName)}
            </span>
          }
          type="text"
          autocomplete="off"
          required
          value={name}
          onInput={setName}
          autofocus
        />
        <ExpirationFields
          draft={draft}
          choiceError={problemAt('choice')}
          dateError={problemAt('date')}
          resolved={resolved.ok ? resolved.text : ''}
          onChange={(changes) => {
            choose({ ...chosen, ...changes });
            clearError();
          }}
        />
        {replaced && summarizeLimits(replaced) !== '' && (
          <div class="check">
            <input
              id="carry-limits"
              type="checkbox"
              checked={copiesLimits}
              onChange={({ currentTarget }) => setCopiesLimits(currentTarget.checked)}
            />
            <label for="carry-limits">Copy the old key’s limits: {summarizeLimits(replaced)}</label>
          </div>
        )}
        <Guidance session={session} />
        <FormError
          text={
            failure && isInDoubt(failure)
              ? `${describeFailure(failure)} The server may still have created the key. Check the list, and revoke the key if it’s there.`
              : generalError(failure, ['name', 'expiration', 'timeZone'])
          }
        />
        <FormActions verb="Create Key" verbing="Creating…" isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}

/**
 * Creates a key with the limits of another. If the new key can't be limited, it's still returned, with the reason, because its value is
 * shown only once.
 */
async function createLimited(create: () => Promise<Result<CreatedApiKeyView>>, replaced: ApiKeyView): Promise<Result<NewApiKey>> {
  const created = await create();
  if (!created.ok) return created;
  const { addresses, callsPerDay } = replaced;
  const { apiKey } = created.value;
  const limited = await window.callkey.request('changeApiKey', { id: apiKey.id, addresses, callsPerDay });
  return { ok: true, value: { ...created.value, ...(limited.ok ? { apiKey: limited.value.apiKey } : { limitFailure: limited.failure }) } };
}

/** Handles a key that was created only after the form had been closed, so that its value can't be shown. */
function onCreatedAfterClose({ apiKey }: CreatedApiKeyView): void {
  void window.callkey.dismissSecret();
  warn(`${apiKey.name} was created, but its value couldn’t be shown. Revoke it.`);
}

function nameProblem(line: string): string | null {
  return line === '' ? 'Enter a name for the key.' : describeLineProblem(line, limits.apiKeyName);
}

function Guidance({ session }: { session: SessionView }) {
  const reach = describeKeyAccess(session);
  return (
    <p class="hint">
      {reach !== null && (
        <>
          Like you, the new key has access to <strong>{reach}</strong>. To limit its access, create it as a user with less access.{' '}
        </>
      )}
      Use one key per integration: revoking a key immediately stops everything that uses it.
    </p>
  );
}
