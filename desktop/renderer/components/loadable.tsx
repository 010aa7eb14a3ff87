import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Failure, Result } from '../../ipc.ts';
import { type Loaded, Resource } from '../state/resource.ts';
import { sessionTurn } from '../state/session.ts';
import { wordsOf } from '../state/words.ts';

const retryMs = 5_000;

/** Something in the core that a component shows: loaded when it appears, and again when the session is renewed. */
export function useResource<Value>(load: () => Promise<Result<Value>>, key = ''): Resource<Value> {
  // What is loaded is named by the key: another key, another resource, which shows what there was until it has its own.
  const last = useRef<Resource<Value> | null>(null);
  const resource = useMemo(() => new Resource<Value>(load, last.current?.state.peek().value ?? null), [key]);
  last.current = resource;
  const turn = sessionTurn.value;
  useEffect(() => {
    void resource.refresh();
  }, [resource, turn]);
  return resource;
}

export type LoadableProps<Value> = {
  resource: Resource<Value>;
  /** What is loaded, for the words: "your API keys". */
  what: string;
  children: (value: Value) => ComponentChildren;
};

/** Shows what is loaded, or that it is being loaded, or why it is not and what to do. */
export function Loadable<Value>({ resource, what, children }: LoadableProps<Value>) {
  const loaded = resource.state.value;
  const isPassing = loaded.failure !== null && mayPass(loaded.failure);
  useEffect(() => {
    if (!isPassing) return undefined;
    const timer = setInterval(() => void resource.refresh(), retryMs);
    return () => clearInterval(timer);
  }, [resource, isPassing]);

  if (loaded.value === null) return <Nothing loaded={loaded} what={what} onRetry={() => void resource.refresh()} />;
  return (
    <>
      {loaded.failure && <Stale loaded={loaded} onRetry={() => void resource.refresh()} />}
      {children(loaded.value)}
    </>
  );
}

/** Whether it is worth asking again without anybody doing anything. */
function mayPass(failure: Failure): boolean {
  return (
    failure.kind === 'unreachable' ||
    (failure.kind === 'refused' && ['unavailable', 'too-many-requests', 'internal'].includes(failure.code))
  );
}

function Nothing<Value>({ loaded, what, onRetry }: { loaded: Loaded<Value>; what: string; onRetry: () => void }) {
  if (!loaded.failure) {
    return (
      <div class="panel" role="status" aria-busy="true">
        <p class="loading">Loading {what} …</p>
      </div>
    );
  }
  return (
    <div class="panel" role="alert">
      <h2>{loaded.failure.kind === 'unreachable' ? 'The core is out of reach' : `That did not work`}</h2>
      <p>{wordsOf(loaded.failure)}</p>
      <button type="button" onClick={onRetry} aria-disabled={loaded.isLoading}>
        Try again
      </button>
    </div>
  );
}

function Stale<Value>({ loaded, onRetry }: { loaded: Loaded<Value>; onRetry: () => void }) {
  if (!loaded.failure) return null;
  return (
    <div class="banner" role="alert">
      <p>{wordsOf(loaded.failure)} This is what was there before.</p>
      <button type="button" onClick={onRetry} aria-disabled={loaded.isLoading}>
        Try again
      </button>
    </div>
  );
}

/** Says that there is nothing, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="panel">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
