import type { ComponentChildren, ComponentProps } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Failure, Result } from '../../ipc.ts';
import { handleSessionFailure } from '../state/session.ts';

type Action = {
  isBusy: boolean;
  /** Why the last run failed; null if it succeeded, or if the input has been changed since. */
  failure: Failure | null;
  clearError(): void;
  /** Shows an error found by the form itself. */
  setError(failure: Failure): void;
  /**
   * Runs the action, unless it's already running.
   *
   * @param onDone receives the value
   * @param onDoneUnmounted receives the value instead if the component was unmounted while the action was running
   */
  run<Value>(act: () => Promise<Result<Value>>, onDone?: (value: Value) => void, onDoneUnmounted?: (value: Value) => void): Promise<void>;
  /** Prevents closing while the action runs, because a sent request can't be taken back. */
  unlessBusy(leave: () => void): () => void;
  form: { current: HTMLFormElement | null };
};

/** Runs the action of a form or dialog. A second click while it's running does nothing. */
export function useAction(): Action {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const isRunning = useRef(false);
  const isMounted = useRef(true);
  useEffect(
    () => () => {
      isMounted.current = false;
    },
    [],
  );

  function setError(why: Failure): void {
    setFailure(why);
    focusFirstInvalid(form.current);
  }

  return {
    isBusy,
    failure,
    form,
    clearError: () => setFailure(null),
    setError,
    async run(act, onDone, onDoneUnmounted) {
      if (isRunning.current) return;
      isRunning.current = true;
      setBusy(true);
      const result = await handleSessionFailure(act());
      isRunning.current = false;
      if (!isMounted.current) {
        if (result.ok) onDoneUnmounted?.(result.value);
        return;
      }
      setBusy(false);
      if (!result.ok) return setError(result.failure);
      setFailure(null);
      onDone?.(result.value);
    },
    unlessBusy: (leave) => () => {
      if (!isRunning.current) leave();
    },
  };
}

/** The attributes that connect a control with its label, hint and error. */
type FieldBinding = { id: string; 'aria-describedby': string | undefined; 'aria-invalid': 'true' | undefined };

type FieldProps = {
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

type FormActionsProps = {
  /** The submit button's text, and its text while the action runs. */
  verb: string;
  verbing?: string;
  isDanger?: boolean;
  isBusy: boolean;
  /** The other button's text. */
  cancel?: string;
  onCancel: () => void;
};

/** Shows the buttons at the end of a form. */
export function FormActions({ verb, verbing = verb, isDanger = false, isBusy, cancel = 'Cancel', onCancel }: FormActionsProps) {
  return (
    <div class="actions">
      <button type="button" aria-disabled={isBusy} onClick={onCancel}>
        {cancel}
      </button>
      <button type="submit" class={isDanger ? 'danger' : 'primary'} aria-disabled={isBusy}>
        {isBusy ? verbing : verb}
      </button>
    </div>
  );
}

/**
 * Focuses the `data-autofocus` element of a part of the page that appears later. Browsers honor `autofocus` only when a page or dialog
 * opens.
 */
export function useAutofocus(within: { readonly current: HTMLElement | null }): void {
  useLayoutEffect(() => within.current?.querySelector<HTMLElement>('[data-autofocus]')?.focus(), [within]);
}
