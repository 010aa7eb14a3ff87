import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Named } from '#contract/console/common.ts';
import { counted } from '#contract/text/count.ts';
import { foldText } from '#contract/text/text.ts';
import type { Failure, Result } from '../../ipc.ts';
import { announce } from '../state/announcement.ts';
import { readServerClock, refuseOwnZone } from '../state/clock.ts';
import { describeFailure, fieldError, isTransient } from '../state/failure-text.ts';
import type { ScreenFilters } from '../state/filters.ts';
import { describeLoaded, type Total } from '../state/format.ts';
import { List, type Loaded, nextCursor, type Source } from '../state/list.ts';
import { leaveForms, startAtHeading } from '../state/navigation.ts';
import { remember } from '../state/remembered.ts';
import { refreshKey, tenancyKey } from '../state/session.ts';

const freshMs = 15_000;
/** A list younger than this doesn't reload when the user returns to the window. */
const youngMs = 5_000;
const retryMs = 5_000;
/** A search on the server starts when the user hasn't typed for this long. */
const typingMs = 250;

/**
 * @property key identifies the list within its tenancy
 * @property every how often the list refreshes, in milliseconds; null for something that's looked up once, which isn't kept either
 * @property initial is shown until the first load has finished
 */
type ListOptions<View> = Omit<Source<View>, 'filter'> & {
  key: string;
  filter?: string;
  every?: number | null;
  initial?: View | null;
};

/**
 * Loads what a screen shows, and keeps it fresh while it's visible. When the user returns to the screen, the last view is shown until a newer
 * one has loaded, even if the core is unreachable. It's reloaded when `refreshKey` changes, and after a temporary failure.
 */
export function useList<View>({ key, filter = '', every = freshMs, initial = null, ...source }: ListOptions<View>): List<View> {
  // What isn't kept needn't be told apart from other tenancies', whose key changes with every letter of the server on the sign-in screen.
  const name = every === null ? key : `${tenancyKey.value}/list/${key}`;
  const list = useMemo(() => {
    const found = every === null ? new List<View>(initial) : remember(name, () => new List<View>(initial));
    found.startWith(filter);
    return found;
  }, [name]);
  list.follow({ filter, ...source });
  useEffect(() => {
    void list.refresh().then(readServerClock);
  }, [list, filter, source.load === null, refreshKey.value]);
  useRefreshes(list, every);
  const { failure } = list.state.value;
  // Lists are in the machine's own zone, so loading them again helps.
  useEffect(() => {
    if (fieldError(failure, 'timeZone') !== null) refuseOwnZone();
  }, [failure]);
  return list;
}

/**
 * Reloads a visible list again and again. Longer lists reload less often, because each page is a request. While nothing changes in a list
 * that's followed closely, the wait doubles each time, up to 15 seconds. It starts over when the user returns to the window, because they may
 * have just placed a call.
 */
function useRefreshes<View>(list: List<View>, every: number | null): void {
  const { failure } = list.state.value;
  const isRetrying = failure !== null && isTransient(failure);
  useEffect(() => {
    if (every === null && !isRetrying) return undefined;
    const least = every ?? 0;
    let [wait, last, isShown] = [least, '', true];
    let timer = setTimeout(refresh, isRetrying ? retryMs : least * list.pages);
    async function refresh(): Promise<void> {
      if (isRetrying) {
        if (!list.state.peek().isLoading) void list.refresh();
      } else if (!document.hidden) await list.refreshIfOlder(0);
      if (least < freshMs) {
        const view = JSON.stringify(list.state.peek().view);
        wait = view === last ? Math.min(2 * wait, freshMs) : least;
        last = view;
      }
      if (isShown) timer = setTimeout(refresh, isRetrying ? retryMs : Math.max(wait, least * list.pages));
    }
    function onReturn(): void {
      wait = least;
      if (document.hidden || isRetrying) return;
      clearTimeout(timer);
      timer = setTimeout(refresh, least * list.pages);
      // Even if loading has taken so long that the list rests, or is loading now, which may be too early for what the user waits for.
      if (least < freshMs) void list.refresh();
      else void list.refreshIfOlder(youngMs);
    }
    if (every !== null) window.addEventListener('focus', onReturn);
    return () => {
      isShown = false;
      clearTimeout(timer);
      window.removeEventListener('focus', onReturn);
    };
  }, [list, every, isRetrying]);
}

/** Returns the text, but a new one only after the user hasn't typed for a moment. */
export function useSettled(text: string): string {
  const [settled, settle] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => settle(text), typingMs);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** Loads a list. If all of it is loaded, the screen searches it; otherwise, the core does. @param load loads a page of matches */
export function useSearchedList<View>({
  search,
  load,
  ...options
}: Omit<ListOptions<View>, 'load'> & { search: string; load: (search: string, cursor: string | null) => Promise<Result<View>> }) {
  const all = useList<View>({ ...options, load: (cursor) => load('', cursor) });
  const { view } = all.state.value;
  const isWhole = nextCursor(view) === null;
  const settled = useSettled(search);
  const asked = isWhole || search === '' ? '' : settled;
  const isTyping = !isWhole && settled !== search;
  const matching = useList<View>({
    key: `${options.key}/matching`,
    filter: `${asked} ${options.filter ?? ''}`,
    every: null,
    isTyping,
    load: asked === '' ? null : (cursor) => load(asked, cursor),
    join: options.join,
  });
  useEffect(() => {
    if (asked === '' && view !== null) matching.change(view);
  }, [asked, view]);
  return { list: asked === '' ? all : matching, isWhole };
}

/** Finds what matches a text, once the user has stopped typing. @returns null while it's searching */
export function useFound<Found>(text: string, find: (text: string) => Promise<Result<Found>>) {
  const typed = text.trim();
  const settled = useSettled(typed);
  const { view, filter, isLoading, failure } = useList<Found>({ key: 'found', filter: settled, every: null, load: () => find(settled) })
    .state.value;
  const isOld = isLoading || filter !== settled || settled !== typed;
  return { found: isOld || failure ? null : view, failure };
}

/** Whether something else has this name. @param key another one starts a new search @param id of what gets the name, if it exists */
export function useIsTaken(name: string, find: (search: string) => Promise<Result<readonly Named[]>>, key = '', id = ''): boolean {
  const search = useSettled(name.trim());
  const load = search === '' ? null : () => find(search);
  const { view } = useList<readonly Named[]>({ key: 'names', filter: `${key} ${search}`, every: null, load }).state.value;
  const folded = foldText(name.trim());
  return folded !== '' && (view ?? []).some((match) => match.id !== id && foldText(match.name.trim()) === folded);
}

/** Returns the user's filters on a screen, which outlive it and are part of its address, and a function that changes some of them. */
export function useFilters<Filters extends object>(filters: ScreenFilters<Filters>): [Filters, (changes: Partial<Filters>) => void] {
  const current = filters.current(tenancyKey.value);
  return [
    current.value,
    (changes) =>
      leaveForms(() => {
        current.value = { ...current.peek(), ...changes };
      }),
  ];
}

/** The row whose details are shown, or why they can't be. Both are null if no row is open, or while it's loading. */
type OpenRow<Row> = { row: Row | null; failure: Failure | null };

/** Returns the row that an address names. If the list is too long to have it, loads it by itself. @param id empty if no row is open */
export function useOpen<Row extends { id: string }>(
  listed: readonly Row[] | undefined,
  id: string,
  load: (id: string) => Promise<Result<Row>>,
): OpenRow<Row> {
  const row = listed?.find((each) => each.id === id);
  const isMissing = listed !== undefined && id !== '' && !row;
  const alone = useList<Row>({ key: `open/${id}`, every: null, load: isMissing ? () => load(id) : null });
  useEffect(() => {
    if (isMissing) void alone.refreshIfOlder(0);
  }, [listed]);
  if (row || !isMissing) return { row: row ?? null, failure: null };
  const { view, failure } = alone.state.value;
  return { row: view, failure: view ? null : failure };
}

type Held<Row> = { shown: readonly Row[] /** New rows that aren't shown yet. */; fresh: readonly Row[]; release: () => void };

/**
 * Keeps the rows of a list that's followed live in place while the user reads them: new rows wait until the user asks for them. What has
 * changed in a row is shown, and rows that have left the list's filter go. When the user returns to the screen, the rows from before don't
 * hold others back, because no one has been reading them.
 *
 * @param of identifies what's listed. For something else, all rows are shown
 * @param compare orders rows, the one to list first being less
 */
export function useHeld<Row>(
  rows: readonly Row[],
  of: string,
  getId: (row: Row) => string,
  compare: (a: Row, b: Row) => number,
): Held<Row> {
  const [releases, setReleases] = useState(0);
  const first = useRef(rows);
  const held = useRef<{ of: string; from: readonly Row[]; rows: readonly Row[] }>({ of: '', from: rows, rows: [] });
  const name = `${of} ${releases} ${refreshKey.value}`;
  return useMemo(() => {
    const isRead = held.current.of === name && held.current.from !== first.current;
    const before = isRead ? held.current.rows : [];
    const [oldest, last] = [before.at(-1), rows.at(-1)];
    const byId = new Map(rows.map((row) => [getId(row), row]));
    // A row that's older than all that were loaded has only been pushed off the page.
    const kept = before.flatMap((row) => byId.get(getId(row)) ?? (last && compare(row, last) > 0 ? row : []));
    const known = new Set(before.map(getId));
    const others = rows.filter((row) => !known.has(getId(row)));
    const isFresh = (row: Row) => oldest !== undefined && compare(row, oldest) < 0;
    const shown = [...kept, ...others.filter((row) => !isFresh(row))];
    held.current = { of: name, from: rows, rows: shown };
    return { shown, fresh: others.filter(isFresh), release: () => setReleases(releases + 1) };
  }, [rows, name]);
}

/** Announces the new rows of a list in its page's footer, where it covers none, and shows them when it's pressed. */
export function FreshRows<Row>({ held: { fresh, release }, noun }: { held: Held<Row>; noun: string }) {
  return (
    <div class="fresh-rows" role="status">
      {fresh.length > 0 && (
        <button
          type="button"
          class="primary"
          onClick={() => {
            release();
            startAtHeading();
          }}
        >
          {counted(fresh.length, `new ${noun}`)}
        </button>
      )}
    </div>
  );
}

/** Opens and closes a screen's dialogs, of which one at most is open. @param list what the dialogs change */
export function useDialogs<Dialog extends { name: string }>(list: Pick<List<unknown>, 'refresh'>) {
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const close = () => setDialog(null);
  return {
    dialog,
    open: (next: Dialog) => setDialog(next),
    close,
    /** Closes the dialog, says what it has done, and reloads the list. */
    done(text: string): Promise<void> {
      close();
      if (text !== '') announce(text);
      return list.refresh();
    },
  };
}

export type LoadableProps<View> = {
  list: List<View>;
  /** Completes "Loading…": "your API keys". */
  noun: string;
  /** Set if the page's footer reports failed refreshes instead. */
  isInPage?: boolean;
  /** Set if the list is filtered, maybe by something that the viewer can't see, because the address may come from a colleague. */
  reset?: Reset | null;
  children: (view: View) => ComponentChildren;
};

export type Reset = { label: string; onReset: () => void };

/** Shows the view, or says that it's loading, or why loading failed and what to do. After a failed refresh, still shows the view. */
export function Loadable<View>({ list, noun, isInPage = false, reset = null, children }: LoadableProps<View>) {
  const loaded = list.state.value;
  if (loaded.view === null) return <NotLoaded {...{ loaded, noun, reset }} onRetry={() => void list.refresh()} />;
  return (
    <>
      {children(loaded.view)}
      {loaded.failure && !isInPage && <Stale list={list} />}
    </>
  );
}

const skeletonRows = [1, 2, 3, 4, 5, 6];

type NotLoadedProps<View> = { loaded: Loaded<View>; noun: string; reset: Reset | null; onRetry: () => void };

function NotLoaded<View>({ loaded: { failure, isLoading }, noun, reset, onRetry }: NotLoadedProps<View>) {
  if (!failure) {
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
      <h2>{failure.kind === 'unreachable' ? 'Can’t reach the server' : 'Couldn’t load this page'}</h2>
      <p>{failure.kind === 'unreachable' ? failure.detail : describeFailure(failure)}</p>
      <div class="actions">
        <button type="button" onClick={onRetry} aria-disabled={isLoading}>
          Try again
        </button>
        {reset && <ResetButton reset={reset} />}
      </div>
    </div>
  );
}

export function ResetButton({ reset: { label, onReset } }: { reset: Reset }) {
  return (
    <button type="button" onClick={onReset}>
      {label}
    </button>
  );
}

/** Says that a refresh has failed, and that the data shown is old. */
export function Stale<View>({ list }: { list: List<View> }) {
  const { failure, isLoading } = list.state.value;
  if (!failure) return null;
  return (
    <div class="box banner stale" role="alert">
      <p>{describeFailure(failure)} Showing the last data loaded.</p>
      <button type="button" onClick={() => void list.refresh()} aria-disabled={isLoading}>
        Try again
      </button>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="panel">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

type CountProps<View> = {
  list: List<View>;
  count: number;
  /** What to call a row: "user". */
  noun: string;
  /** How many rows there are, if the core counts them. */
  of?: Total | null;
  more?: string;
  children?: ComponentChildren;
};

export function Count<View>({ list, count, noun, of = null, more = `Show more ${noun}s`, children }: CountProps<View>) {
  const soFar = nextCursor(list.state.value.view) === null ? '' : ' so far';
  return (
    <>
      <span role="status">
        {of ? describeLoaded(count, of, noun) : `${counted(count, noun)}${soFar}`}
        {children}
      </span>
      <MoreButton list={list} label={more} />
    </>
  );
}

function MoreButton<View>({ list, label }: { list: List<View>; label: string }) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Failure | null>(null);
  if (nextCursor(list.state.value.view) === null) return null;
  async function load(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    setProblem(await list.more());
    setBusy(false);
  }
  return (
    <span class="row end">
      <span role="status">{problem && describeFailure(problem)}</span>
      <button type="button" aria-disabled={isBusy} onClick={() => void load()}>
        {label}
      </button>
    </span>
  );
}
