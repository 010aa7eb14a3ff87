import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { customRange } from '#contract/expiry.ts';
import { Field } from '../../../components/forms/field.tsx';
import { clockLead, now, ownZone } from '../../../state/clock.ts';
import {
  dateForChoice,
  describeClockLead,
  describeRange,
  type ExpirationChoice,
  type ExpirationDraft,
  expirationChoices,
  expirationLabels,
  timeZonesAfter,
} from '../expiration.ts';

type ExpirationFieldsProps = {
  draft: ExpirationDraft;
  choiceError: string | null;
  dateError: string | null;
  /** The expiration time of the draft, or empty. */
  resolved: string;
  onChange: (changes: Partial<ExpirationDraft>) => void;
};

/** Shows the fields for the expiration, the last day of a custom one, and the time zone that the day is in. */
export function ExpirationFields({ draft, choiceError, dateError, resolved, onChange }: ExpirationFieldsProps) {
  const range = customRange(now.value, draft.timeZone);
  return (
    <>
      <Choices draft={draft} error={choiceError} onChange={onChange} />
      {clockLead.value !== 0 && (
        <p class="warning" role="status">
          {describeClockLead(clockLead.value)}
        </p>
      )}
      {draft.choice === 'custom' && (
        <Field label="Last day" error={dateError} hint={`Any day ${describeRange(now.value, draft.timeZone)}.`}>
          {(binding) => (
            <input
              {...binding}
              type="date"
              required
              min={range.earliest}
              max={range.latest}
              value={draft.date}
              onInput={({ currentTarget }) => onChange({ date: currentTarget.value })}
            />
          )}
        </Field>
      )}
      <div class="resolved" hidden={resolved === ''}>
        <output>{resolved}</output>
        {draft.choice !== '' && draft.choice !== 'none' && <ZoneField timeZone={draft.timeZone} onChange={onChange} />}
      </div>
    </>
  );
}

type ChoicesProps = { draft: ExpirationDraft; error: string | null; onChange: (changes: { choice: ExpirationChoice }) => void };

/** Shows radio buttons, each with the date that it results in. */
function Choices({ draft: { choice, timeZone }, error, onChange }: ChoicesProps) {
  const id = useId();
  const invalid = error === null ? undefined : 'true';
  return (
    <fieldset aria-describedby={error === null ? undefined : `${id}-error`}>
      <legend>Expiration</legend>
      <div class="choices">
        {expirationChoices.map((each, index) => (
          <div key={each} class="choice">
            <input
              type="radio"
              name={id}
              checked={each === choice}
              // The group counts as one field, so only its first button is marked and gets the focus.
              aria-invalid={index === 0 ? invalid : undefined}
              aria-labelledby={`${id}-${each}`}
              aria-describedby={`${id}-${each}-day`}
              onChange={() => onChange({ choice: each })}
            />
            <span id={`${id}-${each}`}>{expirationLabels[each]}</span>
            <span id={`${id}-${each}-day`} class="caption">
              {dateForChoice(each, now.value, timeZone)}
            </span>
          </div>
        ))}
      </div>
      {error !== null && (
        <p id={`${id}-error`} class="error">
          {error}
        </p>
      )}
    </fieldset>
  );
}

/** Shows the machine's own zone; a button offers others. */
function ZoneField({ timeZone, onChange }: { timeZone: string; onChange: (changes: { timeZone: string }) => void }) {
  const [isOpen, setOpen] = useState(timeZone !== ownZone.peek());
  const select = useRef<HTMLSelectElement>(null);
  const wasPressed = useRef(false);
  // Focuses the list only after the button was pressed, because the button then disappears. A list that's shown from the start must not
  // take the focus from the expiration choices.
  useLayoutEffect(() => {
    if (wasPressed.current) select.current?.focus();
  }, [isOpen]);
  if (!isOpen) {
    return (
      <p class="hint">
        Your computer’s time zone.{' '}
        <button
          type="button"
          class="link"
          onClick={() => {
            wasPressed.current = true;
            setOpen(true);
          }}
        >
          Use another time zone
        </button>
      </p>
    );
  }
  return (
    <Field label="Time zone" hint="The key stops working at the end of its last day in this time zone.">
      {(binding) => (
        <select {...binding} ref={select} value={timeZone} onChange={({ currentTarget }) => onChange({ timeZone: currentTarget.value })}>
          {timeZonesAfter(ownZone.value).map((zone) => (
            <option key={zone} value={zone}>
              {zone === ownZone.value ? `${zone} (this computer)` : zone}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
