import type { ComponentProps } from 'preact';
import { Field, type FieldProps } from './field.tsx';

type TextFieldProps = Omit<FieldProps, 'children'> &
  Pick<ComponentProps<'input'>, 'inputMode' | 'autocomplete' | 'spellcheck' | 'required' | 'autofocus'> &
  // One member per type: Preact's input types are discriminated by `type`.
  ({ type: 'text' } | { type: 'email' } | { type: 'password' }) & { value: string; onInput: (value: string) => void };

/** A field with a one-line input. */
export function TextField({ label, error = null, hint, warning = null, aside, onInput, ...input }: TextFieldProps) {
  return (
    <Field label={label} error={error} hint={hint} warning={warning} aside={aside}>
      {(binding) => <input {...binding} {...input} onInput={({ currentTarget }) => onInput(currentTarget.value)} />}
    </Field>
  );
}
