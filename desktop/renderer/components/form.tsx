import { type ComponentChildren, type ComponentProps, createContext } from 'preact';
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Failure, Result } from '../../ipc.ts';
import { describeFailure, fieldError, generalError, isInDoubt, type LookedUp, notDone } from '../state/failure-text.ts';
import { filledForms } from '../state/navigation.ts';
import { dropUnshown } from '../state/secret-guard.ts';
import { handleSessionFailure, session } from '../state/session.ts';
import { Dialog, InDialog } from './dialog.tsx';

type Done<Value> = (value: Value) => void;

/** Runs the action of a form or a button. A second click while it's running does nothing. */
export function useAction() {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const isRunning = useRef(false);
  const isMounted = useRef(true);
  useEffect(
    () => () => {
      isMounted.current = false;
    },
    [],
  );
  return {
    isBusy,
    /** Why the last run failed; null if it succeeded. */
    failure,
    clearError: () => setFailure(null),
    /** Replaces why the last run failed, once that's known better. */
    fail: (reason: Failure) => setFailure(reason),
    /** Does nothing while the action is running. @param onDoneUnmounted is called instead of `onDone` if the component is gone by then */
    async run<Value>(act: () => Promise<Result<Value>>, onDone?: Done<Value>, onDoneUnmounted?: Done<Value>): Promise<void> {
      if (isRunning.current) return;
      isRunning.current = true;
      setBusy(true);
      const result = await handleSessionFailure(act());
      isRunning.current = false;
      if (!isMounted.current) {
        if (!result.ok) return;
        dropUnshown(result.value);
        onDoneUnmounted?.(result.value);
        return;
      }
      setBusy(false);
      setFailure(result.ok ? null : result.failure);
      if (result.ok) onDone?.(result.value);
    },
    /** Prevents closing while the action runs, because a sent request can't be taken back. */
    unlessBusy: (leave: () => void) => () => {
      if (!isRunning.current) leave();
    },
  };
}

type Problems = Readonly<Record<string, string | null>>;

type FormState = ReturnType<typeof useAction> & {
  problems: Problems;
  /** Whether the user has tried to submit the form. Only then does it say what's missing. */
  hasTried: boolean;
  isReady: boolean;
  isDanger: boolean;
  /** Whether the user has to wait until the action has finished. */
  isHeld: boolean;
  /** Tells the form that the user has changed something with a button, which isn't an input event. */
  noteInput: () => void;
  /** The fields that show their errors themselves. */
  fields: Set<string>;
  /** Whether the form asks for a code from the user's second factor, and the code. */
  asksCode: boolean;
  code: string;
  setCode: (code: string) => void;
};

const FormContext = createContext<FormState | null>(null);

export function useForm(): FormState {
  const form = useContext(FormContext);
  if (!form) throw new Error('This must be in a form.');
  return form;
}

type FormProps<Value> = {
  /** What's wrong with the input, by field. If anything is, the form doesn't act. */
  problems?: Problems;
  /** Whether the form can act yet. */
  isReady?: boolean;
  /** Whether the action can't be undone. The focus then starts on the button that cancels it. */
  isDanger?: boolean;
  /** Whether users with a second factor must enter a code. The core may ask before the console knows about one set up elsewhere. */
  asksCode?: boolean;
  /** Sends the request. @param code present if the form has asked for one */
  act: (code: { code?: string }) => Promise<Result<Value>>;
  onDone?: ((value: Value) => void) | undefined;
  /** Receives the value instead of `onDone` if the form was closed while the action was running. */
  onDoneUnmounted?: ((value: Value) => void) | undefined;
  /** Called if the response was lost, so that the action may have taken effect. */
  onLost?: (() => void) | undefined;
  /** Looks up whether the action was done after all, if its response was lost. The form then goes on as if the response had arrived. */
  lookUp?: (() => Promise<LookedUp<Value>>) | undefined;
  onFailed?: ((failure: Failure) => void) | undefined;
  /** Whether it only looks something up, so that the dialog can close at any time without asking. */
  changesNothing?: boolean;
  /** Whether errors go when the user changes anything. Otherwise, they stay until the next attempt. */
  clearsErrors?: boolean;
  children: ComponentChildren;
};

/** Shows a form. Marks the fields that it or the core refuses, and focuses the first of them; at first, its `data-autofocus` element. */
export function Form<Value>(props: FormProps<Value> & Pick<ComponentProps<'form'>, 'class' | 'aria-labelledby' | 'onFocusOut'>) {
  const { problems = {}, isReady: isFilledIn = true, isDanger = false, asksCode = false, changesNothing = false, ...others } = props;
  const { act, onDone, onDoneUnmounted, onLost, lookUp, onFailed, clearsErrors = false, children, ...more } = others;
  const [hasTried, setTried] = useState(false);
  const [fields] = useState(() => new Set<string>());
  const [code, setCode] = useState('');
  const ref = useRef<HTMLFormElement>(null);
  const dialog = useContext(InDialog);
  const action = useAction();
  const { failure } = action;
  const needsCode = asksCode && (session.value?.secondFactor === true || code !== '' || fieldError(failure, 'code') !== null);
  const hasCode = code.trim() !== '';
  const isReady = isFilledIn && !(isDanger && needsCode && !hasCode);
  // A sent request can't be taken back.
  const isHeld = action.isBusy && !changesNothing;
  dialog.isBusy = isHeld;
  // Browsers honor `autofocus` only when a page or dialog opens.
  useLayoutEffect(() => {
    ref.current?.querySelector<HTMLElement>('[data-autofocus]')?.focus();
    return () => filledForms.delete(ref);
  }, []);
  useLayoutEffect(() => {
    if (failure) focusFirstInvalid(ref.current);
  }, [failure]);
  useEffect(() => {
    if (failure) onFailed?.(failure);
    if (isInDoubt(failure)) onLost?.();
    if (!lookUp || !isInDoubt(failure)) return undefined;
    // The server can't be reached at the moment. Once it can, the user learns what happened without another attempt.
    let isOver = false;
    const timer = setInterval(async () => {
      const found = await lookUp();
      if (isOver || !found.ok) return;
      if (!found.value) return action.fail(notDone);
      action.clearError();
      done(found.value.done);
    }, lookUpMs);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [failure]);

  const wasLost = useRef(false);
  /** After a lost response, an attempt may be refused only because an earlier one was done. */
  async function actOrLookUp(withCode: { code?: string }): Promise<Result<Value>> {
    const result = await act(withCode);
    if (result.ok || !lookUp || !(wasLost.current || isInDoubt(result.failure))) return result;
    wasLost.current = true;
    const found = await lookUp();
    if (!found.ok) return result;
    if (found.value) return { ok: true, value: found.value.done };
    return isInDoubt(result.failure) ? { ok: false, failure: notDone } : result;
  }

  function submit(event: Event): void {
    event.preventDefault();
    setTried(true);
    if (Object.values(problems).some((problem) => problem !== null)) {
      // What the last attempt refused may be right by now. A lost response is still being looked up.
      if (!isInDoubt(failure)) action.clearError();
      focusFirstInvalid(ref.current);
    } else if (isReady) void action.run(() => actOrLookUp(needsCode && hasCode ? { code } : {}), done, onDoneUnmounted);
  }
  function noteInput(): void {
    if (!changesNothing) filledForms.add(ref);
    if (clearsErrors) action.clearError();
  }
  function done(value: Value): void {
    filledForms.delete(ref);
    onDone?.(value);
  }
  return (
    <FormContext.Provider
      value={{ ...action, problems, hasTried, isReady, isDanger, isHeld, noteInput, fields, asksCode: needsCode, code, setCode }}
    >
      <form {...more} ref={ref} noValidate onSubmit={submit} onInput={noteInput}>
        {children}
      </form>
    </FormContext.Provider>
  );
}

const lookUpMs = 3_000;

/** Focuses the first field with an error right away. In the next frame, the user may already be typing somewhere else. */
function focusFirstInvalid(form: HTMLFormElement | null): void {
  queueMicrotask(() => {
    const field = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
    field?.focus();
    // Selects the text, so that typing replaces a wrong password.
    if (field instanceof HTMLInputElement && field.type === 'password') field.select();
  });
}

type FormDialogProps<Value> = Omit<FormProps<Value>, 'children'> &
  Omit<ComponentProps<typeof Dialog>, 'onDismiss'> &
  Omit<FormActionsProps, 'onCancel'> &
  FormErrorProps & { onClose: () => void };

export function FormDialog<Value>(props: FormDialogProps<Value>) {
  const { title, lead, isAlert = false, isWide = false, verb, verbing, cancel, onClose, children, ...more } = props;
  const { lookUp, changesNothing = false, hides, otherwise = null, ...others } = more;
  const { lost = lookUp ? lookingUp : changesNothing ? '' : inDoubt, ...rest } = others;
  const form = { ...rest, lookUp, changesNothing };
  return (
    <Dialog title={title} lead={lead} isAlert={isAlert} isWide={isWide} onDismiss={onClose}>
      <Form {...form}>
        {children}
        <AskedCode />
        <FormError lost={lost} hides={hides} otherwise={otherwise} />
        <FormActions verb={verb} verbing={verbing} cancel={cancel} onCancel={onClose} />
      </Form>
    </Dialog>
  );
}

const lookingUp = 'The server may still have done this. The console looks it up as soon as the server responds.';
const inDoubt = 'The server may still have done this. Check before you try again.';

type FormErrorProps = {
  /** What the user should do if the response was lost. */
  lost?: string | undefined;
  /** Whether the form already explains a failure. */
  hides?: ((failure: Failure) => boolean) | undefined;
  /** What to show if the form hasn't failed. */
  otherwise?: string | null;
  /** Whether no other dialog explains that the session has ended. */
  saysEverything?: boolean;
};

/** Shows why a form has failed, unless one of its fields does. */
export function FormError({ lost = '', hides, otherwise = null, saysEverything = false }: FormErrorProps) {
  const { failure, fields } = useForm();
  if (failure === null || hides?.(failure)) return <ErrorText text={failure ? null : otherwise} />;
  const isAboutSession = failure.kind === 'session-ended' || failure.kind === 'incompatible';
  const text = saysEverything && isAboutSession ? describeFailure(failure) : generalError(failure, [...fields]);
  return <ErrorText text={text !== null && lost !== '' && isInDoubt(failure) ? `${text} ${lost}` : text} />;
}

/** Shows an error that doesn't concern a field. */
export function ErrorText({ text }: { text: string | null }) {
  return <div role="alert">{text !== null && <p class="error box low bad">{text}</p>}</div>;
}

type FormActionsProps = {
  /** The submit button's text, and its text while the action runs. */
  verb: string;
  verbing?: string | undefined;
  cancel?: string | undefined;
  onCancel: () => void;
};

export function FormActions({ cancel = 'Cancel', onCancel, ...submit }: FormActionsProps) {
  const { isDanger, isHeld } = useForm();
  return (
    <div class="actions">
      <button type="button" data-autofocus={isDanger || undefined} aria-disabled={isHeld} onClick={isHeld ? undefined : onCancel}>
        {cancel}
      </button>
      <SubmitButton {...submit} />
    </div>
  );
}

type SubmitButtonProps = Pick<FormActionsProps, 'verb' | 'verbing'> & {
  /** Whether the button looks disabled. Pressing it still shows what's wrong. */
  isOff?: boolean;
};

export function SubmitButton({ verb, verbing = verb, isOff = false }: SubmitButtonProps) {
  const { isBusy, isReady, isDanger } = useForm();
  return (
    <button type="submit" class={isDanger ? 'danger' : 'primary'} aria-disabled={isBusy || !isReady || isOff}>
      {isBusy ? verbing : verb}
    </button>
  );
}

/** Returns the error at a field. The form then doesn't show it above its buttons. @param name undefined if the form doesn't know the field */
export function useFieldError(name: string | undefined): string | null {
  const form = useContext(FormContext);
  if (name !== undefined) form?.fields.add(name);
  useEffect(
    () => () => {
      if (name !== undefined) form?.fields.delete(name);
    },
    [],
  );
  if (!form || name === undefined) return null;
  return (form.hasTried ? form.problems[name] : null) ?? fieldError(form.failure, name);
}

/** The attributes that connect a control with its label, hint and error. */
export type FieldBinding = { id: string; 'aria-describedby': string | undefined; 'aria-invalid': 'true' | undefined };

type FieldProps = {
  /** Its name in the request, by which the form finds its error. */
  name?: string | undefined;
  label: ComponentChildren;
  /** An error that doesn't wait until the form is submitted. */
  error?: string | null;
  hint?: ComponentChildren;
  /** Doesn't block submitting the form. */
  warning?: string | null;
  /** Shown next to the label, such as a counter. */
  aside?: ComponentChildren;
  children: (binding: FieldBinding) => ComponentChildren;
};

export function Field({ name, label, error: early = null, hint, warning = null, aside, children }: FieldProps) {
  const id = useId();
  const found = useFieldError(name);
  const error = early ?? found;
  const describedBy = [hint ? `${id}-hint` : '', warning === null ? '' : `${id}-warning`, error === null ? '' : `${id}-error`]
    .filter((part) => part !== '')
    .join(' ');
  return (
    <div class="field">
      <div class="row between label-row">
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

type InputProps = Omit<FieldProps, 'children'> & { value: string; onInput: (value: string) => void; autofocus?: boolean };

type TextFieldProps = InputProps &
  Pick<ComponentProps<'input'>, 'inputMode' | 'autocomplete' | 'spellcheck' | 'required'> &
  // A union, because Preact's types for inputs are discriminated by `type`.
  ({ type?: 'text' } | { type: 'email' } | { type: 'password' });

export function TextField({ name, label, error = null, hint, warning = null, aside, autofocus, onInput, ...input }: TextFieldProps) {
  return (
    <Field {...{ name, label, error, hint, warning, aside }}>
      {(binding) => (
        <input
          autocomplete="off"
          {...binding}
          {...input}
          data-autofocus={autofocus || undefined}
          onInput={({ currentTarget }) => onInput(currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** Tells password managers whose password a form asks for. */
export function HiddenUsername() {
  return <input type="text" autocomplete="username" value={session.value?.viewer.email ?? ''} readOnly hidden />;
}

type SelectFieldProps<Name extends string> = Omit<InputProps, 'value' | 'onInput' | 'autofocus'> & {
  value: Name;
  /** The values with their labels. */
  options: readonly (readonly [Name, string])[];
  onChange: (value: Name) => void;
};

export function SelectField<Name extends string>({ value, options, onChange, ...field }: SelectFieldProps<Name>) {
  return <Field {...field}>{(binding) => <Select {...binding} value={value} options={options} onChange={onChange} />}</Field>;
}

type SelectProps<Name extends string> = Partial<FieldBinding> & { 'aria-label'?: string | undefined } & Pick<
    SelectFieldProps<Name>,
    'value' | 'options' | 'onChange'
  >;

export function Select<Name extends string>({ value, options, onChange, ...binding }: SelectProps<Name>) {
  return (
    <select
      {...binding}
      value={value}
      onChange={({ currentTarget }) => onChange(options.find(([name]) => name === currentTarget.value)?.[0] ?? value)}
    >
      {options.map(([name, label]) => (
        <option key={name} value={name}>
          {label}
        </option>
      ))}
    </select>
  );
}

type CodeFieldProps = Pick<ComponentProps<typeof TextField>, 'value' | 'onInput' | 'autofocus' | 'inputMode'> & { hint?: string };

const usualHint = 'From your authenticator app. If you’ve lost it, enter one of your recovery codes.';

export function CodeField({ hint = usualHint, ...input }: CodeFieldProps) {
  return <TextField name="code" label="Code" hint={hint} autocomplete="one-time-code" spellcheck={false} {...input} />;
}

function AskedCode() {
  const { asksCode, code, setCode } = useForm();
  return asksCode ? <CodeField value={code} onInput={setCode} /> : null;
}

type SearchInputProps = Pick<ComponentProps<'input'>, 'inputMode'> & {
  label: string;
  placeholder?: string;
  value: string;
  onInput: (value: string) => void;
};

export function SearchInput({ label, placeholder = label, inputMode, value, onInput }: SearchInputProps) {
  return (
    <label class="grow">
      <span class="visually-hidden">{label}</span>
      <input type="search" {...{ placeholder, inputMode, value }} onInput={({ currentTarget }) => onInput(currentTarget.value)} />
    </label>
  );
}

type ChoiceProps<Name extends string> = {
  label?: string;
  value: Name;
  options: readonly (readonly [Name, string])[];
  onChange: (value: Name) => void;
};

export function FilterSelect<Name extends string>({ label, ...select }: ChoiceProps<Name>) {
  return (
    <div class="filter">
      <Select aria-label={label} {...select} />
    </div>
  );
}

export function Chips<Name extends string>({ value, options, onChange }: Omit<ChoiceProps<Name>, 'label'>) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: A fieldset is for a form's fields; these are buttons.
    <div class="row chips" role="group" aria-label="Show">
      {options.map(([name, text]) => (
        <button key={name} type="button" aria-pressed={name === value} onClick={() => onChange(name)}>
          {text}
        </button>
      ))}
    </div>
  );
}
