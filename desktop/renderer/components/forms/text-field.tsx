import type { ComponentProps } from 'preact';
import { Field, type FieldProps } from './field.tsx';

type TextFieldProps = Omit<FieldProps, 'children'> &
  Pick<ComponentProps<'input'>, 'inputMode' | 'autocomplete' | 'spellcheck' | 'required'> &
  // A union, because Preact's types for inputs are discriminated by `type`.
  ({ type: 'text' } | { type: 'email' } | { type: 'password' }) & { value: string; autofocus?: boolean; onInput: (value: string) => void };

/** Shows a field with a one-line input. */
export function TextField({ label, error = null, hint, warning = null, aside, autofocus = false, onInput, ...input }: TextFieldProps) {
  return (
    <Field label={label} error={error} hint={hint} warning={warning} aside={aside}>
      {(binding) => (
        <input
          {...binding}
          {...input}
          data-autofocus={autofocus || undefined}
          onInput={({ currentTarget }) => onInput(currentTarget.value)}
        />
      )}
    </Field>
  );
}
