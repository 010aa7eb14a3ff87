import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Failure, Result } from '../../ipc.ts';
import { describeFailure, fieldError, generalError } from '../state/failure-text.ts';
import { pluralize } from '../state/format.ts';
import type { Resource } from '../state/list.ts';
import { session } from '../state/session.ts';
import { Dialog } from './dialog.tsx';
import { FormError, TextField, useAction } from './form.tsx';
import { Loadable } from './list.tsx';

/** @property label asks the user to type the text */
export type Confirmation = { label: ComponentChildren; text: string };

type ConfirmDangerProps<Preview> = {
  title: string;
  lead: ComponentChildren;
  isWide?: boolean;
  /** The effect of the action. */
  preview: Resource<Preview>;
  describe: (preview: Preview) => ComponentChildren;
  /** Returns null if there may be too many to count. */
  countQueuedCalls: (preview: Preview) => number | null;
  /** What the user must type to confirm a large action; null if nothing. */
  toConfirmation?: (preview: Preview) => Confirmation | null;
  /** The button's text, and its text while the action runs. */
  verb: string;
  verbing: string;
  /** Whether the fields in `describe` are complete. */
  isReady?: boolean;
  /** Whether to suggest cancelling the calls. The user still decides. */
  suggestsCancelling?: boolean;
  act: (cancelQueuedCalls: boolean) => Promise<Result<null>>;
  onDone: () => void;
  /** Called if someone else has already deleted or revoked it. */
  onAlreadyRemoved: () => void;
  onClose: () => void;
};

/** Asks before an action that can't be undone, shows its effect, and offers to cancel the affected calls. The focus starts on Cancel. */
export function ConfirmDanger<Preview>(props: ConfirmDangerProps<Preview>) {
  const { title, lead, isWide = false, preview, describe, countQueuedCalls, toConfirmation, verb, verbing } = props;
  const { act, onDone, onAlreadyRemoved, onClose, isReady: isFilledIn = true, suggestsCancelling = false } = props;
  const [cancelQueuedCalls, setCancel] = useState(false);
  const [typed, setTyped] = useState('');
  const { isBusy, failure, run, unlessBusy } = useAction();
  const loaded = preview.state.value;
  const close = unlessBusy(onClose);

  if ([failure, loaded.failure].some((each) => each?.kind === 'refused' && each.code === 'not-found'))
    return <AlreadyRemoved onAlreadyRemoved={onAlreadyRemoved} />;
  // A failed preview doesn't block the action, because revoking a leaked key may be urgent.
  const confirmation = loaded.value === null ? null : (toConfirmation?.(loaded.value) ?? null);
  const isReady = (loaded.loadedAt > 0 || loaded.failure !== null) && isConfirmed(confirmation, typed) && isFilledIn;
  return (
    <Dialog title={title} lead={lead} isAlert isWide={isWide} onDismiss={close}>
      <Loadable resource={preview} noun="details">
        {describe}
      </Loadable>
      {loaded.value !== null && (
        <CancelCalls
          calls={countQueuedCalls(loaded.value)}
          isChosen={cancelQueuedCalls}
          isSuggested={suggestsCancelling}
          onChoose={setCancel}
        />
      )}
      {confirmation && <ConfirmationField confirmation={confirmation} value={typed} onInput={setTyped} />}
      <FormError text={failure && describeFailure(failure)} />
      <DangerActions
        {...{ verb, verbing, isBusy, isReady }}
        onCancel={close}
        onAct={() => void run(() => act(cancelQueuedCalls), onDone)}
      />
    </Dialog>
  );
}

type DangerActionsProps = {
  verb: string;
  verbing: string;
  isBusy: boolean;
  isReady?: boolean;
  onCancel: () => void;
  onAct: () => void;
};

/** Shows the buttons of a dialog for an action that can't be undone. The focus starts on Cancel. */
export function DangerActions({ verb, verbing, isBusy, isReady = true, onCancel, onAct }: DangerActionsProps) {
  return (
    <div class="actions">
      <button type="button" data-autofocus aria-disabled={isBusy} onClick={onCancel}>
        Cancel
      </button>
      <button
        type="button"
        class="danger"
        aria-disabled={isBusy || !isReady}
        onClick={() => {
          if (isReady) onAct();
        }}
      >
        {isBusy ? verbing : verb}
      </button>
    </div>
  );
}

/** @property calls null if their number isn't known */
type CancelCallsProps = { calls: number | null; isChosen: boolean; isSuggested?: boolean; onChoose: (isChosen: boolean) => void };

/** Offers to cancel the queued calls. Is shown even if there are none, so that the buttons below stay in place when the number arrives. */
export function CancelCalls({ calls, isChosen, isSuggested = false, onChoose }: CancelCallsProps) {
  const isOne = calls === 1;
  return (
    <div class="check two-lines">
      <input
        id="cancel-calls"
        type="checkbox"
        checked={isChosen}
        disabled={calls === 0}
        onChange={({ currentTarget }) => onChoose(currentTarget.checked)}
      />
      <label for="cancel-calls">Also cancel {calls ? pluralize(calls, 'call') : 'calls'} not yet dialed</label>
      {calls === 0 ? (
        <p class="hint">No calls are waiting to be dialed.</p>
      ) : (
        <p class={isSuggested ? 'warning' : 'hint'}>
          {isSuggested && `Someone else may have placed ${isOne ? 'it' : 'them'}. `}
          If you don’t cancel {isOne ? 'it, it’ll' : 'them, they’ll'} still be dialed.
        </p>
      )}
    </div>
  );
}

export function isConfirmed(confirmation: Confirmation | null, typed: string): boolean {
  return confirmation === null || typed.trim().toLowerCase() === confirmation.text.toLowerCase();
}

export function ConfirmationField({
  confirmation: { label },
  value,
  onInput,
}: {
  confirmation: Confirmation;
  value: string;
  onInput: (typed: string) => void;
}) {
  return <TextField label={label} type="text" autocomplete="off" spellcheck={false} value={value} onInput={onInput} />;
}

export function AlreadyRemoved({ onAlreadyRemoved }: { onAlreadyRemoved: () => void }) {
  return (
    <Dialog
      title="Already gone"
      lead="Someone else revoked or deleted it, or you no longer have access to it."
      isAlert
      onDismiss={onAlreadyRemoved}
    >
      <div class="actions">
        <button type="button" class="primary" data-autofocus onClick={onAlreadyRemoved}>
          OK
        </button>
      </div>
    </Dialog>
  );
}

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
