import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { counted } from '#contract/text/count.ts';
import type { Result } from '../../ipc.ts';
import { isNotFound, type LookedUp } from '../state/failure-text.ts';
import type { List } from '../state/list.ts';
import { CloseAction, Dialog } from './dialog.tsx';
import { FormDialog, TextField } from './form.tsx';
import { Loadable } from './list.tsx';

/** @property label asks the user to type the text */
type Confirmation = { label: string; text: string };

type ConfirmDangerProps<Preview, Value> = {
  title: string;
  lead: ComponentChildren;
  isWide?: boolean | 'very';
  /** The effect of the action. */
  preview: List<Preview>;
  describe: (preview: Preview) => ComponentChildren;
  /** Returns null if there may be too many to count. */
  countQueuedCalls: (preview: Preview) => number | null;
  /** What the user must type to confirm a large action; null if nothing. */
  confirmation: Confirmation | null;
  verb: string;
  verbing: string;
  isReady?: boolean;
  /** Why the action isn't possible at all. */
  problem?: string | null;
  /** Whether to suggest cancelling the calls. The user still decides. */
  suggestsCancelling?: boolean;
  act: (cancelQueuedCalls: boolean) => Promise<Result<Value>>;
  lookUp: () => Promise<LookedUp<Value>>;
  onDone: (value: Value) => void;
  /** Called if someone else has already deleted or revoked it. */
  onAlreadyRemoved: () => void;
  onClose: () => void;
};

/** Asks before an action that can't be undone, shows its effect, and offers to cancel the affected calls. The focus starts on Cancel. */
export function ConfirmDanger<Preview, Value>(props: ConfirmDangerProps<Preview, Value>) {
  const { preview, describe, countQueuedCalls, confirmation, isReady = true, problem = null, suggestsCancelling = false } = props;
  const { title, lead, isWide = false, verb, verbing, act, lookUp, onDone, onAlreadyRemoved, onClose } = props;
  const [cancelQueuedCalls, setCancel] = useState(false);
  const [typed, setTyped] = useState('');
  const [isGone, setGone] = useState(false);
  const { view, loadedAt, failure } = preview.state.value;
  const confirmed = confirmation === null || typed.trim().toLowerCase() === confirmation.text.toLowerCase();
  if (isGone || (failure && isNotFound(failure))) return <AlreadyRemoved onAlreadyRemoved={onAlreadyRemoved} />;
  return (
    <FormDialog
      {...{ title, lead, isWide, verb, verbing, onDone, onClose }}
      isAlert
      isDanger
      // A failed preview doesn't block the action, because revoking a leaked key may be urgent.
      isReady={(loadedAt > 0 || failure !== null) && confirmed && isReady && problem === null}
      act={() => act(cancelQueuedCalls)}
      lookUp={lookUp}
      onFailed={(failure) => setGone(isNotFound(failure))}
      otherwise={problem}
    >
      <Loadable list={preview} noun="details">
        {describe}
      </Loadable>
      {view !== null && (
        <CancelCalls calls={countQueuedCalls(view)} isChosen={cancelQueuedCalls} isSuggested={suggestsCancelling} onChoose={setCancel} />
      )}
      {confirmation && problem === null && <TextField label={confirmation.label} spellcheck={false} value={typed} onInput={setTyped} />}
    </FormDialog>
  );
}

/** @property calls null if their number isn't known */
type CancelCallsProps = { calls: number | null; isChosen: boolean; isSuggested: boolean; onChoose: (isChosen: boolean) => void };

/** Offers to cancel the queued calls. Is shown even if there are none, so that the buttons below stay in place when the number arrives. */
function CancelCalls({ calls, isChosen, isSuggested, onChoose }: CancelCallsProps) {
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
      <label for="cancel-calls">Also cancel {calls ? counted(calls, 'call') : 'calls'} not yet dialed</label>
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

export function AlreadyRemoved({ onAlreadyRemoved }: { onAlreadyRemoved: () => void }) {
  return (
    <Dialog
      title="Already gone"
      lead="Someone else revoked or deleted it, or you no longer have access to it."
      isAlert
      onDismiss={onAlreadyRemoved}
    >
      <CloseAction label="OK" onClose={onAlreadyRemoved} />
    </Dialog>
  );
}

type ConfirmProps<Value> = {
  title: string;
  lead: ComponentChildren;
  verb: string;
  verbing: string;
  /** @param code present if the user has a second factor */
  act: (code: { code?: string }) => Promise<Result<Value>>;
  /** Without it, the user has to check whether a lost action was done. */
  lookUp?: () => Promise<LookedUp<Value>>;
  lost?: string;
  onDone: (value: Value) => void;
  onClose: () => void;
  asksCode?: boolean;
};

/** Asks before a sensitive action, and for a code if the user has a second factor. */
export function Confirm<Value>({ asksCode = true, ...props }: ConfirmProps<Value>) {
  return (
    <FormDialog {...props} isAlert isDanger asksCode={asksCode}>
      {null}
    </FormDialog>
  );
}
