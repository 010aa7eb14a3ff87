import { useState } from 'preact/hooks';
import { type DoNotCallEntryView, doNotCallReasonLabels } from '#contract/protection/do-not-call.ts';
import { Facts } from '../../../components/details.tsx';
import { Dialog } from '../../../components/forms/dialog.tsx';
import { FormError } from '../../../components/forms/field.tsx';
import { FormActions } from '../../../components/forms/form-actions.tsx';
import { TextField } from '../../../components/forms/text-field.tsx';
import { useAction } from '../../../components/forms/use-action.ts';
import { Day } from '../../../components/time.tsx';
import { fieldError, generalError } from '../../../state/format/failure-text.ts';
import { describeSource } from './entries.ts';

type RemoveNumberProps = { entry: DoNotCallEntryView; onRemoved: () => void; onClose: () => void };

/** Removes a number from the do-not-call list. The reason is stored in the audit log. */
export function RemoveNumber({ entry, onRemoved, onClose }: RemoveNumberProps) {
  const [reason, setReason] = useState('');
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  return (
    <Dialog
      title={`Remove ${entry.phone}?`}
      lead="Calls to this number will be accepted again immediately, unless another list or rule forbids them."
      isAlert
      onDismiss={close}
    >
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => window.callkey.request('liftDoNotCall', { id: entry.id, reason }), onRemoved);
        }}
      >
        <Facts
          facts={[
            ['Reason', doNotCallReasonLabels[entry.reason]],
            ['For', <bdi key="scope">{entry.scope.name}</bdi>],
            ['Added by', <bdi key="by">{describeSource(entry)}</bdi>],
            ['Added', <Day key="added" at={entry.createdAt} />],
            ...(entry.note === null ? [] : [['Note', <bdi key="note">{entry.note}</bdi>] as const]),
          ]}
        />
        <TextField
          label="Why may it be called again?"
          hint="Shown on the Activity screen."
          error={fieldError(failure, 'reason')}
          type="text"
          autocomplete="off"
          value={reason}
          onInput={setReason}
          autofocus
        />
        <FormError text={generalError(failure, ['reason'])} />
        <FormActions verb="Remove" verbing="Removing…" isDanger isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}
