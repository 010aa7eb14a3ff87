import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

/** The attributes that connect a control with its label, hint and error. */
type FieldBinding = { id: string; 'aria-describedby': string | undefined; 'aria-invalid': 'true' | undefined };

export type FieldProps = {
  label: ComponentChildren;
  error?: string | null;
  hint?: ComponentChildren;
  /** Doesn't block submitting the form. */
  warning?: string | null;
  /** Shown next to the label, such as a counter. */
  aside?: ComponentChildren;
  children: (binding: FieldBinding) => ComponentChildren;
};

/** Shows a control with its label, hint and error. */
export function Field({ label, error = null, hint, warning = null, aside, children }: FieldProps) {
  const id = useId();
  const describedBy = [hint ? `${id}-hint` : '', warning === null ? '' : `${id}-warning`, error === null ? '' : `${id}-error`]
    .filter((part) => part !== '')
    .join(' ');
  return (
    <div class="field">
      <div class="label-row">
        <label for={id}>{label}</label>
        {aside}
      </div>
      {children({ id, 'aria-describedby': describedBy || undefined, 'aria-invalid': error === null ? undefined : 'true' })}
      {hint && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
      {warning !== null && (
        <p id={`${id}-warning`} class="warning">
          {warning}
        </p>
      )}
      {error !== null && (
        <p id={`${id}-error`} class="error">
          {error}
        </p>
      )}
    </div>
  );
}

/** Shows an error that concerns the whole form, not one field. */
export function FormError({ text }: { text: string | null }) {
  return <div role="alert">{text !== null && <p class="error form-error">{text}</p>}</div>;
}

/** Moves the focus to the first field with an error. */
export function focusFirstInvalid(form: HTMLFormElement | null): void {
  requestAnimationFrame(() => {
    const field = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
    field?.focus();
    // Selects the text, so that typing replaces a wrong password.
    if (field instanceof HTMLInputElement && field.type === 'password') field.select();
  });
}
