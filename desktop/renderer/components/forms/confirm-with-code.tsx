import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Failure, Result } from '../../../ipc.ts';
import { fieldError, generalError } from '../../state/format/failure-text.ts';
import { session } from '../../state/session.ts';
import { DangerActions } from './confirm-danger.tsx';
import { Dialog } from './dialog.tsx';
import { FormError } from './field.tsx';
import { TextField } from './text-field.tsx';
import { useAction } from './use-action.ts';

type CodeFieldProps = { error: string | null; value: string; onInput: (code: string) => void; autofocus?: boolean; hint?: string };

const usualHint = 'From your authenticator app. If you’ve lost it, enter one of your recovery codes.';

/** Asks for a code from the user's authenticator app, or a recovery code. */
export function CodeField({ error, value, onInput, autofocus = false, hint = usualHint }: CodeFieldProps) {
  return (
    <TextField
      label="Code"
      hint={hint}
      error={error}
      type="text"
      autocomplete="one-time-code"
      spellcheck={false}
      value={value}
      onInput={onInput}
      autofocus={autofocus}
    />
  );
}

/**
 * Asks for the code that a request needs from a user with a second factor. The core may ask for one before the console knows about the
 * factor, for example because it was set up in another browser.
 *
 * @param isNeeded whether the request needs a code at all
 */
export function useCode(failure: Failure | null, isNeeded = true) {
  const [code, setCode] = useState('');
  const error = fieldError(failure, 'code');
  const isAsked = isNeeded && (session.value?.secondFactor === true || error !== null || code !== '');
  const isEmpty = code.trim() === '';
  return {
    isReady: !isAsked || !isEmpty,
    /** The field of the request. */
    fields: isAsked && !isEmpty ? { code } : {},
    field: isAsked && <CodeField error={error} value={code} onInput={setCode} />,
  };
}

type ConfirmWithCodeProps<Value> = {
  title: string;
  lead: ComponentChildren;
  /** The button's text, and its text while the action runs. */
  verb: string;
  verbing: string;
  /** @param code present if the user has a second factor */
  act: (code: { code?: string }) => Promise<Result<Value>>;
  onDone: (value: Value) => void;
  /** Receives the value instead of `onDone` if the dialog was closed while the action was running. */
  onDoneUnmounted?: (value: Value) => void;
  onClose: () => void;
  /** Whether the action needs a code from users with a second factor. */
  needsCode?: boolean;
};

/** Asks before a sensitive action, and for a code if the user has a second factor. */
export function ConfirmWithCode<Value>(props: ConfirmWithCodeProps<Value>) {
  const { title, lead, verb, verbing, act, onDone, onDoneUnmounted, onClose, needsCode } = props;
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const { isReady, fields, field } = useCode(failure, needsCode);
  const close = unlessBusy(onClose);
  const submit = () => void run(() => act(fields), onDone, onDoneUnmounted);
  return (
    <Dialog title={title} lead={lead} isAlert onDismiss={close}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) submit();
        }}
      >
        {field}
        <FormError text={generalError(failure, ['code'])} />
        <DangerActions {...{ verb, verbing, isBusy, isReady }} onCancel={close} onAct={submit} />
      </form>
    </Dialog>
  );
}
