import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { customRange } from '#contract/expiry.ts';
import { Field } from '../components/field.tsx';
import { type ExpirationDraft, expirationChoices, expirationWords, rangeWords, timeZones } from '../state/expiration.ts';
import { minute, ownZone } from '../state/times.ts';

type ExpirationFieldsProps = {
  draft: ExpirationDraft;
  choiceError: string | null;
  dateError: string | null;
  onChange: (changes: Partial<ExpirationDraft>) => void;
};

/** When a key ends: a choice, the last day where it is a custom one, and the zone in which that day ends. */
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
                {expirationWords[choice]}
              </option>
            ))}
          </select>
        )}
      </Field>
      {draft.choice === 'custom' && (
        <Field label="Last day" error={dateError} hint={`Any day ${rangeWords(minute.value, draft.timeZone)}.`}>
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

/** The machine's own zone, unless another one is chosen on purpose. */
function ZoneField({ timeZone, onChange }: { timeZone: string; onChange: (changes: { timeZone: string }) => void }) {
  const [isOpen, setOpen] = useState(timeZone !== ownZone);
  const select = useRef<HTMLSelectElement>(null);
  const wasPressed = useRef(false);
  // Where the button was that has gone. Not where the list comes by itself: whoever chooses an expiration is elsewhere.
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
