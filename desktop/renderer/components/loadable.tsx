import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Result } from '../../ipc.ts';
import { readServerClock } from '../state/clock.ts';
import { describeFailure, isTransient } from '../state/format/failure-text.ts';
import { type Loaded, Resource } from '../state/loading/resource.ts';
import { remember } from '../state/loading/view.ts';
import { refreshKey, tenancyKey } from '../state/session.ts';

const retryMs = 5_000;

/**
 * Loads something from the core when the component appears, and again whenever `refreshKey` changes.
 *
 * @param initial is shown until the first load has finished
 */
export function useResource<Value>(
  load: (before: Value | null) => Promise<Result<Value>>,
  key = '',
  initial: Value | null = null,
): Resource<Value> {
  // A different key creates a new resource, which shows the previous one's value until it has loaded.
  const last = useRef<Resource<Value> | null>(null);
  const resource = useMemo(() => new Resource<Value>(load, last.current?.state.peek().value ?? initial), [key]);
  last.current = resource;
  const refresh = refreshKey.value;
  useEffect(() => {
    void resource.refresh();
  }, [resource, refresh]);
  useRetries(resource);
  return resource;
}

const freshMs = 15_000;
/** A list younger than this doesn't reload when the user returns to the window. */
const youngMs = 5_000;

/**
 * Loads what a screen shows, and reloads it when the user returns to the window and every 15 seconds while it's visible. When the user
 * returns to the screen, the last value is shown until a newer one has loaded, even if the core is unreachable.
 */
export function useFreshResource<Value>(
  name: string,
  load: (before: Value | null) => Promise<Result<Value>>,
  everyMs = freshMs,
): Resource<Value> {
  const key = `${tenancyKey.value}/resource/${name}`;
  const resource = useMemo(() => remember(key, () => new Resource<Value>(load)), [key]);
  const refresh = refreshKey.value;
  useEffect(() => {
    void resource.refresh().then(readServerClock);
  }, [resource, refresh]);
  useEffect(() => {
    const refreshOlderThan = (ms: number) => () => {
      if (!document.hidden) void resource.refreshIfOlder(ms);
    };
    const timer = setInterval(refreshOlderThan(0), everyMs);
    const onReturn = refreshOlderThan(youngMs);
    window.addEventListener('focus', onReturn);
    return () => {
      clearInterval(timer);
      window.removeEventListener('focus', onReturn);
    };
  }, [resource, everyMs]);
  useRetries(resource);
  return resource;
}

type LoadableProps<Value> = {
  resource: Resource<Value>;
  /** Completes "Loading…": "your API keys". */
  noun: string;
  /** Set if the page's footer reports failed refreshes instead. */
  isInPage?: boolean;
  /**
   * Set if the list is filtered. It may be filtered by something that the viewer can't see, because the address may come from a colleague.
   */
  reset?: Reset | null;
  children: (value: Value) => ComponentChildren;
};

/** A button that shows the list without filters. */
export type Reset = { label: string; onReset: () => void };

/** Shows the value, or says that it's loading, or why loading failed and what to do. After a failed refresh, still shows the value. */
export function Loadable<Value>({ resource, noun, isInPage = false, reset = null, children }: LoadableProps<Value>) {
  const loaded = resource.state.value;
  if (loaded.value === null) return <NotLoaded {...{ loaded, noun, reset }} onRetry={() => void resource.refresh()} />;
  return (
    <>
      {children(loaded.value)}
      {loaded.failure && !isInPage && <Stale resource={resource} />}
    </>
  );
}

/** Retries after a temporary failure. */
export function useRetries<Value>(resource: Resource<Value>): void {
  const { failure } = resource.state.value;
  const isRetrying = failure !== null && isTransient(failure);
  useEffect(() => {
    if (!isRetrying) return undefined;
    const timer = setInterval(() => {
      if (!resource.state.peek().isLoading) void resource.refresh();
    }, retryMs);
    return () => clearInterval(timer);
  }, [resource, isRetrying]);
}

const skeletonRows = [1, 2, 3, 4, 5, 6];

type NotLoadedProps<Value> = { loaded: Loaded<Value>; noun: string; reset: Reset | null; onRetry: () => void };

function NotLoaded<Value>({ loaded, noun, reset, onRetry }: NotLoadedProps<Value>) {
  if (!loaded.failure) {
    return (
      <div class="skeleton" role="status" aria-busy="true">
        <span class="visually-hidden">Loading {noun}…</span>
        {skeletonRows.map((row) => (
          <span key={row} class="bar" />
        ))}
      </div>
    );
  }
  return (
    <div class="panel" role="alert">
      <h2>{loaded.failure.kind === 'unreachable' ? 'Can’t reach the server' : 'Couldn’t load this page'}</h2>
      <p>{loaded.failure.kind === 'unreachable' ? loaded.failure.detail : describeFailure(loaded.failure)}</p>
      <div class="actions">
        <button type="button" onClick={onRetry} aria-disabled={loaded.isLoading}>
          Try again
        </button>
        {reset && (
          <button type="button" onClick={reset.onReset}>
            {reset.label}
          </button>
        )}
      </div>
    </div>
  );
}

/** Says that a refresh has failed, and that the data shown is old. */
export function Stale<Value>({ resource }: { resource: Resource<Value> }) {
  const { failure, isLoading } = resource.state.value;
  if (!failure) return null;
  return (
    <div class="banner stale" role="alert">
      <p>{describeFailure(failure)} Showing the last data loaded.</p>
      <button type="button" onClick={() => void resource.refresh()} aria-disabled={isLoading}>
        Try again
      </button>
    </div>
  );
}

/** Says that a list is empty, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="panel">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
