import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { customRange } from '#contract/expiry.ts';
import { Field } from '../components/field.tsx';
import { minute } from '../state/clock.ts';
import { describeRange, type ExpirationDraft, expirationChoices, expirationLabels, timeZones } from '../state/expiration.ts';
import { ownZone } from '../state/format-time.ts';

type ExpirationFieldsProps = {
  draft: ExpirationDraft;
  choiceError: string | null;
  dateError: string | null;
  onChange: (changes: Partial<ExpirationDraft>) => void;
};

/** The expiration, the last day of a custom one, and the time zone in which that day ends. */
export function ExpirationFields({ draft, choiceError, dateError, onChange }: ExpirationFieldsProps) {
  const range = customRange(minute.value, draft.timeZone);
  return (
    <>
      <Field label="Expiration" error={choiceError}>
        {(binding) => (
          <select
            {...binding}
            required
            value={draft.choice}
            onChange={({ currentTarget }) => onChange({ choice: expirationChoices.find((choice) => choice === currentTarget.value) ?? '' })}
          >
            <option value="" disabled hidden>
              Choose …
            </option>
            {expirationChoices.map((choice) => (
              <option key={choice} value={choice}>
                {expirationLabels[choice]}
              </option>
            ))}
          </select>
        )}
      </Field>
      {draft.choice === 'custom' && (
        <Field label="Last day" error={dateError} hint={`Any day ${describeRange(minute.value, draft.timeZone)}.`}>
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
      {draft.choice !== '' && draft.choice !== 'none' && <ZoneField timeZone={draft.timeZone} onChange={onChange} />}
    </>
  );
}

/** States the machine's own zone; a button offers the others. */
function ZoneField({ timeZone, onChange }: { timeZone: string; onChange: (changes: { timeZone: string }) => void }) {
  const [isOpen, setOpen] = useState(timeZone !== ownZone);
  const select = useRef<HTMLSelectElement>(null);
  const wasPressed = useRef(false);
  // Only after the button was pressed, which is gone then. Otherwise the list would take the focus from the Expiration field.
  useLayoutEffect(() => {
    if (wasPressed.current) select.current?.focus();
  }, [isOpen]);
  if (!isOpen) {
    return (
      <p class="hint">
        The day ends in <strong>{timeZone}</strong>, this computer’s time zone.{' '}
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
    <Field label="Time zone" hint="The key stops working when the last day ends there.">
      {(binding) => (
        <select {...binding} ref={select} value={timeZone} onChange={({ currentTarget }) => onChange({ timeZone: currentTarget.value })}>
          {timeZones.map((zone) => (
            <option key={zone} value={zone}>
              {zone === ownZone ? `${zone} (this computer)` : zone}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
