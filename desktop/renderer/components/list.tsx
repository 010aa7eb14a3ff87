import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Named } from '#contract/console/common.ts';
import { foldText } from '#contract/text/text.ts';
import type { Result } from '../../ipc.ts';
import { readServerClock } from '../state/clock.ts';
import { describeFailure, isTransient } from '../state/failure-text.ts';
import { type Loaded, loadAsMany, loadNext, type Paged, type Pages, Resource } from '../state/list.ts';
import { remember, viewSignal } from '../state/remembered.ts';
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

/** A search on the server starts when the user hasn't typed for this long. */
export const typingMs = 250;

type Searched<View extends Paged> = {
  resource: Resource<View>;
  pages: Pages<View>;
  /** Whether the whole list is loaded. If so, the screen searches it immediately; otherwise, the core has searched it. */
  isWhole: boolean;
};

/**
 * Loads a list. If the whole list is loaded, the screen searches it; otherwise, the core does.
 *
 * @param getPages loads the list for a search
 */
export function usePages<View extends Paged>(
  name: string,
  getPages: (search: string) => Pages<View>,
  search: string,
  everyMs?: number,
): Searched<View> {
  const all = useFreshResource<View>(name, (before) => loadAsMany(getPages(''), before), everyMs);
  const view = all.state.value.value;
  const isWhole = view === null || view.nextCursor === null;
  const settled = useDebounced(search, typingMs);
  const key = isWhole || search === '' ? '' : settled;
  const matching = useResource<View>(
    (before) =>
      key === '' ? Promise.resolve({ ok: true, value: all.state.peek().value ?? getPages('').empty }) : loadAsMany(getPages(key), before),
    `${name} ${key}`,
  );
  return key === '' ? { resource: all, pages: getPages(''), isWhole } : { resource: matching, pages: getPages(key), isWhole };
}

type MoreButtonProps<View extends Paged> = { resource: Resource<View>; pages: Pages<View>; label: string };

/** Loads the next page of a list, if there is one. */
export function MoreButton<View extends Paged>({ resource, pages, label }: MoreButtonProps<View>) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  if ((resource.state.value.value?.nextCursor ?? null) === null) return null;
  async function load(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    const result = await loadNext(pages, resource);
    setBusy(false);
    setProblem(result === null || result.ok ? null : describeFailure(result.failure));
  }
  return (
    <span class="end">
      <span role="status">{problem}</span>
      <button type="button" aria-disabled={isBusy} onClick={() => void load()}>
        {label}
      </button>
    </span>
  );
}

/** Returns the value, but a new one only after it hasn't changed for this long. */
export function useDebounced(value: string, ms: number): string {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/**
 * Returns whether something else already has this name, compared without case, accents and width.
 *
 * @param find searches for names
 * @param key identifies what `find` searches. Another one starts a new search
 * @param id of the thing that gets the name, if it already exists
 */
export function useIsTaken(name: string, find: (search: string) => Promise<Result<readonly Named[]>>, key = '', id = ''): boolean {
  const search = useDebounced(name.trim(), typingMs);
  const nothing = { ok: true as const, value: [] };
  const matches = useResource(async () => (search === '' ? nothing : find(search)), `${key} ${search}`).state.value.value ?? [];
  const folded = foldText(name.trim());
  return folded !== '' && matches.some((match) => match.id !== id && foldText(match.name.trim()) === folded);
}

/**
 * Returns the user's settings on a screen, which are kept when the user leaves it. Each tenancy has its own.
 *
 * @returns the settings, and a function that changes some of the settings
 */
export function useView<View extends object>(name: string, initial: View): [View, (changes: Partial<View>) => void] {
  const key = tenancyKey.value;
  const view = useMemo(() => viewSignal(key, name, initial), [key, name]);
  return [
    view.value,
    (changes) => {
      view.value = { ...view.peek(), ...changes };
    },
  ];
}
