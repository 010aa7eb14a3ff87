import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Result } from '../../ipc.ts';
import type { Resource } from '../state/resource.ts';
import { plural, wordsOf } from '../state/words.ts';
import { Dialog } from './dialog.tsx';
import { FormError } from './field.tsx';
import { Loadable } from './loadable.tsx';
import { useAction } from './use-action.ts';

export type ConfirmDangerProps<Preview> = {
  title: string;
  lead: ComponentChildren;
  isWide?: boolean;
  /** What would be touched. */
  preview: Resource<Preview>;
  describe: (preview: Preview) => ComponentChildren;
  queuedCallsOf: (preview: Preview) => number;
  /** What the button says, and what it says while it is under way. */
  verb: string;
  verbing: string;
  act: (cancelQueuedCalls: boolean) => Promise<Result<null>>;
  onDone: () => void;
  /** It is there no more: somebody else was faster. */
  onGone: () => void;
  onClose: () => void;
};

/** Asks before something is gone for good, shows what it touches, and offers to cancel the calls that hang on it. Starts on Cancel. */
export function ConfirmDanger<Preview>(props: ConfirmDangerProps<Preview>) {
  const { title, lead, isWide = false, preview, describe, queuedCallsOf, verb, verbing, act, onDone, onGone, onClose } = props;
  const [cancelQueuedCalls, setCancel] = useState(false);
  const { isBusy, failure, run, unlessBusy } = useAction();
  const loaded = preview.state.value;
  const close = unlessBusy(onClose);

  if ([failure, loaded.failure].some((each) => each?.kind === 'refused' && each.code === 'not-found')) return <Gone onGone={onGone} />;
  const queuedCalls = loaded.value === null ? 0 : queuedCallsOf(loaded.value);
  // Where nothing can be learned of what it touches, it can be done all the same: it may be urgent.
  const isReady = loaded.value !== null || loaded.failure !== null;
  return (
    <Dialog title={title} lead={lead} isAlert isWide={isWide} onDismiss={close}>
      <Loadable resource={preview} what="what this touches">
        {describe}
      </Loadable>
      {queuedCalls > 0 && (
        <div class="check">
          <input
            id="cancel-calls"
            type="checkbox"
            checked={cancelQueuedCalls}
            onChange={({ currentTarget }) => setCancel(currentTarget.checked)}
          />
          <label for="cancel-calls">Also cancel {plural(queuedCalls, 'call')} not yet dialed</label>
          <p class="hint">Otherwise they are still dialed.</p>
        </div>
      )}
      <FormError text={failure && wordsOf(failure)} />
      <div class="actions">
        <button type="button" autofocus aria-disabled={isBusy} onClick={close}>
          Cancel
        </button>
        <button
          type="button"
          class="danger"
          aria-disabled={isBusy || !isReady}
          onClick={() => {
            if (isReady) void run(() => act(cancelQueuedCalls), onDone);
          }}
        >
          {isBusy ? verbing : verb}
        </button>
      </div>
    </Dialog>
  );
}

function Gone({ onGone }: { onGone: () => void }) {
  return (
    <Dialog title="Already gone" lead="Somebody else was faster, or you may not see it any more." isAlert onDismiss={onGone}>
      <div class="actions">
        <button type="button" class="primary" autofocus onClick={onGone}>
          OK
        </button>
      </div>
    </Dialog>
  );
}
