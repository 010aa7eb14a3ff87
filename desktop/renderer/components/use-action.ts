import { useEffect, useRef, useState } from 'preact/hooks';
import type { Failure, Result } from '../../ipc.ts';
import { ask } from '../state/session.ts';
import { focusFirstInvalid } from './field.tsx';

export type Action = {
  isBusy: boolean;
  /** Why it was not done the last time. */
  failure: Failure | null;
  /** What is wrong is not so any more: something was changed. */
  forgive(): void;
  /** Says itself what is wrong, without asking the core. */
  refuse(failure: Failure): void;
  /**
   * Does it, unless it is under way.
   *
   * @param onDone takes what came of it
   * @param onOrphaned takes it where what asked for it is gone by then
   */
  run<Value>(act: () => Promise<Result<Value>>, onDone?: (value: Value) => void, onOrphaned?: (value: Value) => void): Promise<void>;
  /** A way out that is closed while it is under way: what was sent cannot be taken back. */
  unlessBusy(leave: () => void): () => void;
  form: { current: HTMLFormElement | null };
};

/** The one thing that a form or a dialog does, once at a time. */
export function useAction(): Action {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const isUnderWay = useRef(false);
  const isThere = useRef(true);
  useEffect(
    () => () => {
      isThere.current = false;
    },
    [],
  );

  function refuse(why: Failure): void {
    setFailure(why);
    focusFirstInvalid(form.current);
  }

  return {
    isBusy,
    failure,
    form,
    forgive: () => setFailure(null),
    refuse,
    async run(act, onDone, onOrphaned) {
      if (isUnderWay.current) return;
      isUnderWay.current = true;
      setBusy(true);
      const result = await ask(act());
      isUnderWay.current = false;
      if (!isThere.current) {
        if (result.ok) onOrphaned?.(result.value);
        return;
      }
      setBusy(false);
      if (!result.ok) return refuse(result.failure);
      setFailure(null);
      onDone?.(result.value);
    },
    unlessBusy: (leave) => () => {
      if (!isUnderWay.current) leave();
    },
  };
}
