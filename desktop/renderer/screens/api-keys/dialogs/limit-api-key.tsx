import { useState } from 'preact/hooks';
import type { ApiKeyDetailsView, ApiKeyView } from '#contract/console/api-keys.ts';
import { Dialog } from '../../../components/forms/dialog.tsx';
import { Field, FormError, focusFirstInvalid } from '../../../components/forms/field.tsx';
import { FormActions } from '../../../components/forms/form-actions.tsx';
import { TextField } from '../../../components/forms/text-field.tsx';
import { useAction } from '../../../components/forms/use-action.ts';
import { fieldError, generalError } from '../../../state/format/failure-text.ts';
import { addressesProblem, callsPerDayProblem, changedLimits, lockOutWarning, toDraft } from '../key-limits.ts';

type LimitApiKeyProps = {
  view: ApiKeyDetailsView;
  onChanged: (apiKey: ApiKeyView) => void;
  onClose: () => void;
};

/** Limits the addresses from which a key is accepted, and the calls that it can place per day. */
export function LimitApiKey({ view, onChanged, onClose }: LimitApiKeyProps) {
  // Keeps the key as it was when the dialog opened, because the changes are based on that version.
  const [apiKey] = useState(view.apiKey);
  const [draft, setDraft] = useState(() => toDraft(apiKey));
  const [hasTried, setTried] = useState(false);
  const { isBusy, failure, form, clearError, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  const problems = { addresses: addressesProblem(draft.addresses), callsPerDay: callsPerDayProblem(draft.callsPerDay) };
  const input = (changes: Partial<typeof draft>) => {
    setDraft({ ...draft, ...changes });
    clearError();
  };

  function submit(event: Event): void {
    event.preventDefault();
    setTried(true);
    if (problems.addresses !== null || problems.callsPerDay !== null) {
      focusFirstInvalid(form.current);
      return;
    }
    const change = changedLimits(apiKey, draft);
    if (change === null) {
      close();
      return;
    }
    void run(
      () => window.callkey.request('changeApiKey', { id: apiKey.id, ...change }),
      (changed) => onChanged(changed.apiKey),
    );
  }

  return (
    <Dialog
      title="Limit API key"
      lead={
        <>Limits reduce the harm that a leaked key can do. Changes to {<strong>{apiKey.name}</strong>} take effect at its next request.</>
      }
      onDismiss={close}
    >
      <form ref={form} onSubmit={submit} noValidate>
        <Field
          label="Addresses"
          error={(hasTried ? problems.addresses : null) ?? fieldError(failure, 'addresses')}
          hint={
            <>
              The key will be accepted only from these IP addresses and networks, one per line, such as 192.0.2.7 or 10.0.0.0/8. Leave it
              empty to allow any address. {view.lastUsedAddress !== null && <>Last used from {view.lastUsedAddress}.</>}
            </>
          }
          warning={lockOutWarning(draft.addresses, view)}
        >
          {(binding) => (
            <textarea
              {...binding}
              rows={4}
              spellcheck={false}
              autocomplete="off"
              data-autofocus
              value={draft.addresses}
              onInput={({ currentTarget }) => input({ addresses: currentTarget.value })}
            />
          )}
        </Field>
        <TextField
          label="Calls per day"
          error={(hasTried ? problems.callsPerDay : null) ?? fieldError(failure, 'callsPerDay')}
          hint={
            view.today
              ? `Each day starts at midnight in ${view.today.timeZone}. Calls placed today: ${view.today.placed}.`
              : 'Leave it empty for no limit. Calls over the limit are refused until the next midnight in the key’s time zone.'
          }
          type="text"
          inputMode="numeric"
          autocomplete="off"
          value={draft.callsPerDay}
          onInput={(callsPerDay) => input({ callsPerDay })}
        />
        <FormError text={generalError(failure, ['addresses', 'callsPerDay'])} />
        <FormActions verb="Save" verbing="Saving…" isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}
