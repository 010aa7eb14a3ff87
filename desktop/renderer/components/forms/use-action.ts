import { useEffect, useRef, useState } from 'preact/hooks';
import type { Failure, Result } from '../../../ipc.ts';
import { handleSessionFailure } from '../../state/session.ts';
import { focusFirstInvalid } from './field.tsx';

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
