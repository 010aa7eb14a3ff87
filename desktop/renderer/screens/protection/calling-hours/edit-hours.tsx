import { useState } from 'preact/hooks';
import { type HoursRule, hoursRulesSchema, type Weekday, weekdays } from '#contract/protection/calling-hours.ts';
import type { CallingHoursView } from '#contract/protection/protection.ts';
import { parseJson } from '#contract/text/json.ts';
import { Dialog } from '../../../components/forms/dialog.tsx';
import { Field, FormError } from '../../../components/forms/field.tsx';
import { FormActions } from '../../../components/forms/form-actions.tsx';
import { useAction } from '../../../components/forms/use-action.ts';
import { Icon } from '../../../components/icons.tsx';
import { fieldError, generalError, isConflict } from '../../../state/format/failure-text.ts';
import type { Resource } from '../../../state/loading/resource.ts';
import { saveRules } from '../save-rules.ts';
import type { NamedScope } from '../scope-select.tsx';
import { dayLabels } from './week.ts';

type EditHoursProps = {
  scope: NamedScope;
  /** The saved hours, which someone else may change while the dialog is open. */
  hours: CallingHoursView;
  resource: Resource<CallingHoursView>;
  onSaved: (hours: CallingHoursView) => void;
  onClose: () => void;
};

const workdays: Weekday[] = ['mon', 'tue', 'wed', 'thu', 'fri'];
const newRule: HoursRule = { prefix: '', days: workdays, from: '09:00', to: '20:00' };

/** Edits all rules of a partner, account or campaign. Nothing is saved until all of them are valid. */
export function EditHours({ scope, hours: { rules: saved, version }, resource, onSaved, onClose }: EditHoursProps) {
  const [opened] = useState(saved);
  const [rules, setRules] = useState<readonly HoursRule[]>(saved.length === 0 ? [newRule] : saved);
  const [fileProblem, setFileProblem] = useState<string | null>(null);
  const { isBusy, failure, form, run, unlessBusy, clearError } = useAction();
  const close = unlessBusy(onClose);
  const isOutdated = !isBusy && JSON.stringify(saved) !== JSON.stringify(opened);
  const change = (changed: readonly HoursRule[]) => {
    clearError();
    setRules(changed);
  };
  return (
    <Dialog title={`Calling hours for ${scope.name}`} isWide="very" onDismiss={close}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          const input = { scope: scope.kind, id: scope.id, rules: [...rules], version };
          void run(() => saveRules(resource, () => window.callkey.request('setCallingHours', input)), onSaved);
        }}
      >
        <p class="hint">
          Times are in the time zone of the person being called. The rules with the longest matching prefix apply. A day without a rule is
          closed. A rule for a date replaces all other rules on that date.
        </p>
        <div class="rules">
          {rules.map((rule, index) => (
            <RuleFields
              key={index}
              rule={rule}
              error={fieldError(failure, `rules.${index}`)}
              onChange={(changed) => change(rules.with(index, changed))}
              onRemove={() => change(rules.toSpliced(index, 1))}
            />
          ))}
          {rules.length === 0 && <p class="notice">Without rules, inherited hours apply.</p>}
        </div>
        <div class="actions at-start">
          <button type="button" onClick={() => change([...rules, newRule])}>
            <Icon name="plus" /> Add hours
          </button>
          <button type="button" onClick={() => change([...rules, { prefix: '', date: '', closed: true }])}>
            <Icon name="plus" /> Add a date
          </button>
        </div>
        <Field label="Or load a JSON file" hint="It replaces all rules above." error={fileProblem}>
          {(binding) => (
            <input
              {...binding}
              type="file"
              accept=".json,application/json"
              onChange={({ currentTarget }) =>
                void currentTarget.files?.[0]?.text().then((text) => {
                  const read = hoursRulesSchema.safeParse(parseJson(text));
                  setFileProblem(read.success ? null : 'This isn’t a list of rules. See the examples in the documentation.');
                  if (read.success) change(read.data);
                })
              }
            />
          )}
        </Field>
        {isOutdated && (
          <p class="warning" role="status">
            These hours were changed after you opened this dialog. If you save, your rules will replace those changes.
          </p>
        )}
        <FormError
          text={generalError(
            isOutdated && failure && isConflict(failure) ? null : failure,
            rules.map((_, index) => `rules.${index}`),
          )}
        />
        <FormActions verb="Save" verbing="Saving…" isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}

type RuleFieldsProps = { rule: HoursRule; error: string | null; onChange: (rule: HoursRule) => void; onRemove: () => void };

function RuleFields({ rule, error, onChange, onRemove }: RuleFieldsProps) {
  const { prefix, days, date, from, to, closed } = rule;
  // A time input doesn't accept 24:00, so 00:00 stands for the end of the day.
  const setTime = (time: 'from' | 'to', text: string) => onChange({ ...rule, [time]: time === 'to' && text === '00:00' ? '24:00' : text });
  return (
    <fieldset class="rule" aria-invalid={error === null ? undefined : 'true'} tabIndex={error === null ? undefined : -1}>
      <legend class="visually-hidden">Rule</legend>
      <input
        class="prefix"
        type="text"
        inputMode="tel"
        aria-label="Numbers that start with"
        placeholder="All numbers"
        value={prefix}
        onInput={({ currentTarget }) => onChange({ ...rule, prefix: currentTarget.value.replaceAll(' ', '') })}
      />
      {days ? (
        <span class="days">
          {weekdays.map((day) => (
            <button
              key={day}
              type="button"
              aria-pressed={days.includes(day)}
              onClick={() => onChange({ ...rule, days: weekdays.filter((each) => (each === day) !== days.includes(each)) })}
            >
              {dayLabels[day].slice(0, 3)}
            </button>
          ))}
        </span>
      ) : (
        <input
          type="date"
          aria-label="Date"
          value={date}
          onInput={({ currentTarget }) => onChange({ ...rule, date: currentTarget.value })}
        />
      )}
      {!days && (
        <label class="check">
          <input
            type="checkbox"
            checked={closed === true}
            onChange={({ currentTarget }) =>
              onChange(currentTarget.checked ? { prefix, date, closed: true } : { prefix, date, from: '09:00', to: '20:00' })
            }
          />
          Closed
        </label>
      )}
      {!closed && (
        <span class="line">
          <input type="time" aria-label="From" value={from} onInput={({ currentTarget }) => setTime('from', currentTarget.value)} /> –{' '}
          <input
            type="time"
            aria-label="To"
            value={to === '24:00' ? '00:00' : to}
            onInput={({ currentTarget }) => setTime('to', currentTarget.value)}
          />
        </span>
      )}
      <button type="button" class="quiet icon-only" aria-label="Remove this rule" data-tip="Remove" onClick={onRemove}>
        <Icon name="trash" />
      </button>
      {error !== null && <p class="error">{error}</p>}
    </fieldset>
  );
}
