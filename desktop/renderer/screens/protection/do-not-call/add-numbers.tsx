import { useMemo, useState } from 'preact/hooks';
import { type DoNotCallReason, doNotCallReasonLabels, doNotCallReasons } from '#contract/protection/do-not-call.ts';
import { Dialog } from '../../../components/forms/dialog.tsx';
import { Field, FormError } from '../../../components/forms/field.tsx';
import { FormActions } from '../../../components/forms/form-actions.tsx';
import { TextField } from '../../../components/forms/text-field.tsx';
import { useAction } from '../../../components/forms/use-action.ts';
import { ownZone } from '../../../state/clock.ts';
import { fieldError, generalError } from '../../../state/format/failure-text.ts';
import { pluralize } from '../../../state/format/format.ts';
import { type NamedScope, ScopeSelect } from '../scope-select.tsx';
import { addChecked, describeAdded, type ReadFile, readFile, readNumbers } from './pasted-numbers.ts';

type AddNumbersProps = { home: NamedScope; onAdded: (message: string) => void; onClose: () => void };

/** Adds one number, a pasted list, or the numbers in a file. */
export function AddNumbers({ home, onAdded, onClose }: AddNumbersProps) {
  const [text, setText] = useState('');
  const [file, setFile] = useState<File | null>(null);
  const [column, setColumn] = useState('');
  const [fileRead, setFileRead] = useState<ReadFile | null>(null);
  const [country, setCountry] = useState('');
  const [reason, setReason] = useState<DoNotCallReason>('asked');
  const [note, setNote] = useState('');
  const [until, setUntil] = useState('');
  const [scope, setScope] = useState(home);
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  const { numbers, problems } = useMemo(() => readNumbers(text), [text]);
  const chosenCountry = country.trim().toUpperCase() || undefined;
  const read = async (from: File, name: string) => {
    setFile(from);
    setColumn(name);
    const result = await readFile(from, name);
    setFileRead(result);
    if (result.text !== null) setText(result.text);
  };
  const fields = {
    reason,
    ...(chosenCountry !== undefined && { country: chosenCountry }),
    ...(note.trim() !== '' && { note }),
    ...(until !== '' && { until, timeZone: ownZone.value }),
    ...(scope.kind === 'partner' ? { partnerId: scope.id } : { accountId: scope.id }),
  };
  return (
    <Dialog title="Add to the do-not-call list" onDismiss={close}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void run(
            () => addChecked(numbers, problems, chosenCountry, (phones) => window.callkey.request('addDoNotCall', { phones, ...fields })),
            (added) => onAdded(describeAdded(added)),
          );
        }}
      >
        <Field
          label="Phone numbers"
          hint="In any common format, on separate lines or separated by commas, semicolons or tabs. You can paste a spreadsheet column."
          error={fieldError(failure, 'phones')}
          aside={<span class="counter">{numbers.length === 0 ? '' : pluralize(numbers.length, 'number')}</span>}
        >
          {(binding) => (
            <textarea
              {...binding}
              rows={5}
              spellcheck={false}
              data-autofocus
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
            />
          )}
        </Field>
        <Field
          label="Or choose a CSV file"
          hint={fileRead?.note || 'The column is found by its header. All numbers get the reason, note and end date below.'}
          error={fileRead?.problem ?? null}
        >
          {(binding) => (
            <input
              {...binding}
              type="file"
              accept=".csv,.tsv,.txt,text/csv,text/plain"
              onChange={({ currentTarget }) => {
                const [chosen] = currentTarget.files ?? [];
                if (chosen) void read(chosen, '');
              }}
            />
          )}
        </Field>
        {file && fileRead && fileRead.columns.length > 1 && (
          <Field label="Column of the file">
            {(binding) => (
              <select {...binding} value={column} onChange={({ currentTarget }) => void read(file, currentTarget.value)}>
                <option value="">Found by its header</option>
                {fileRead.columns.map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        <TextField
          label="Country of numbers without a country code"
          hint="Two letters, such as DE. Leave it empty if all numbers start with +."
          error={fieldError(failure, 'country')}
          type="text"
          autocomplete="off"
          value={country}
          onInput={setCountry}
        />
        <Field label="Reason" error={fieldError(failure, 'reason')}>
          {(binding) => (
            <select
              {...binding}
              value={reason}
              onChange={({ currentTarget }) => setReason(doNotCallReasons.find((each) => each === currentTarget.value) ?? 'asked')}
            >
              {doNotCallReasons.map((each) => (
                <option key={each} value={each}>
                  {doNotCallReasonLabels[each]}
                </option>
              ))}
            </select>
          )}
        </Field>
        <TextField
          label="Note (optional)"
          error={fieldError(failure, 'note')}
          type="text"
          autocomplete="off"
          value={note}
          onInput={setNote}
        />
        <Field
          label="Ends (optional)"
          hint="The last day. Leave it empty for an entry that doesn’t end."
          error={fieldError(failure, 'until')}
        >
          {(binding) => <input {...binding} type="date" value={until} onInput={({ currentTarget }) => setUntil(currentTarget.value)} />}
        </Field>
        {home.kind === 'partner' && (
          <div class="field">
            <span class="label">For</span>
            <ScopeSelect home={home} kinds={['partner', 'account']} chosen={scope} onChoose={setScope} />
            <p class="hint">
              {scope.kind === 'partner' ? 'No account of this partner will call these numbers.' : 'Other accounts can still call them.'}
            </p>
          </div>
        )}
        <FormError text={generalError(failure, ['phones', 'country', 'reason', 'note', 'until'])} />
        <FormActions verb="Add" verbing="Adding…" isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}
