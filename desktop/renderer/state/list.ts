import { type Signal, signal } from '@preact/signals';
import { type Failure, type Result, refusal } from '../../ipc.ts';
import { handleSessionFailure } from './session.ts';

/**
 * What a list has loaded. The view is kept while it's being reloaded, and also if reloading fails.
 *
 * @property filter what the view was filtered by
 * @property loadedAt when the view arrived, in milliseconds
 * @property tookMs how long loading took
 */
export type Loaded<View> = {
  view: View | null;
  filter: string;
  failure: Failure | null;
  isLoading: boolean;
  loadedAt: number;
  tookMs: number;
};

/**
 * How a list is loaded.
 *
 * @property filter identifies what's filtered. Until the view with another filter has loaded, the last view is shown
 * @property isTyping whether the user is still typing another filter
 * @property load loads a page. Null if there's nothing to load at the moment
 * @property merge adds a new first page to what was loaded before. Without it, all pages are loaded again
 * @property join adds the next page. Without it, the arrays of both views are joined
 */
export type Source<View> = {
  filter: string;
  isTyping?: boolean | undefined;
  load: ((cursor: string | null) => Promise<Result<View>>) | null;
  merge?: ((newest: View, before: View) => View) | undefined;
  join?: ((view: View, next: View) => View) | undefined;
};

/** Waits at least 20 times as long as the last load took, because refreshing a slow list more often would make it slower for everyone. */
const restPerLoad = 20;

/** Something that a screen loads from the core, in one or several pages. */
export class List<View> {
  readonly state: Signal<Loaded<View>>;
  /** How many pages are loaded, and how many a refresh loads. */
  pages = 1;
  #source: Source<View> = { filter: '', load: null };
  #latest = 0;

  constructor(view: View | null = null) {
    this.state = signal({ view, filter: '', failure: null, isLoading: true, loadedAt: 0, tookMs: 0 });
  }

  /** Sets how to load from now on. */
  follow(source: Source<View>): void {
    if (source.filter !== this.#source.filter) this.pages = 1;
    this.#source = source;
  }

  /** Whether the view is still that of another filter. */
  get isOld(): boolean {
    const { view, filter } = this.state.value;
    return view !== null && (filter !== this.#source.filter || this.#source.isTyping === true);
  }

  /** Forgets what was loaded with another filter. */
  startWith(filter: string): void {
    const { filter: before, loadedAt } = this.state.peek();
    if (loadedAt === 0 || before === filter) return;
    this.#latest += 1;
    this.state.value = { view: null, filter, failure: null, isLoading: true, loadedAt: 0, tookMs: 0 };
  }

  /** Reloads. Only the last of several concurrent loads is used, whatever order the responses arrive in. */
  async refresh(): Promise<void> {
    this.#latest += 1;
    const turn = this.#latest;
    const { filter, load } = this.#source;
    this.state.value = { ...this.state.peek(), isLoading: load !== null };
    if (!load) return;
    const startedAt = Date.now();
    const result = await handleSessionFailure(this.#loadPages(load, () => turn === this.#latest));
    if (turn !== this.#latest) return;
    this.state.value = result.ok
      ? { view: result.value, filter, failure: null, isLoading: false, loadedAt: Date.now(), tookMs: Date.now() - startedAt }
      : { ...this.state.peek(), failure: result.failure, isLoading: false };
  }

  async #loadPages(load: NonNullable<Source<View>['load']>, isNeeded: () => boolean): Promise<Result<View>> {
    const { filter, merge } = this.#source;
    let result = await load(null);
    const { view, filter: before } = this.state.peek();
    if (merge && result.ok) return view && before === filter ? { ok: true, value: merge(result.value, view) } : result;
    for (let page = 1; result.ok && page < this.pages && isNeeded(); page++) {
      const cursor = nextCursor(result.value);
      if (cursor === null) break;
      const next = await load(cursor);
      result = next.ok ? { ok: true, value: this.#join(result.value, next.value) } : next;
    }
    return result;
  }

  /** Reloads if the view is at least this old, unless it's already loading, or the last load failed, because then it's retried anyway. */
  async refreshIfOlder(ms: number): Promise<void> {
    const { isLoading, failure, loadedAt, tookMs } = this.state.peek();
    if (!isLoading && !failure && Date.now() - loadedAt >= Math.max(ms, restPerLoad * tookMs)) await this.refresh();
  }

  /** Adds the next page, unless the list still shows another filter's, whose cursor doesn't fit. @returns why it couldn't be loaded */
  async more(): Promise<Failure | null> {
    const { filter, load } = this.#source;
    const shown = this.state.peek();
    const cursor = nextCursor(shown.view);
    if (!load || cursor === null || shown.filter !== filter) return null;
    const result = await handleSessionFailure(load(cursor));
    const { view } = this.state.peek();
    if (!result.ok) return result.failure;
    // In the meantime, a refresh may have loaded other pages.
    if (view !== null && nextCursor(view) === cursor) {
      this.pages += 1;
      this.change(this.#join(view, result.value));
    }
    return null;
  }

  /** Replaces the view without a request. The response to a load in progress is then ignored. */
  change(view: View): void {
    this.#latest += 1;
    this.state.value = { ...this.state.peek(), view, isLoading: false };
  }

  #join(view: View, next: View): View {
    return this.#source.join?.(view, next) ?? joinArrays(view, next);
  }
}

/** Returns where the next page starts; null if there is none. */
export function nextCursor(view: unknown): string | null {
  return typeof view === 'object' && view !== null && 'nextCursor' in view && typeof view.nextCursor === 'string' ? view.nextCursor : null;
}

/** Joins each array of two pages, and takes everything else from the second one. */
function joinArrays<View>(view: View, next: View): View {
  const arrays = Object.entries(Object(view)).flatMap(([name, items]) =>
    Array.isArray(items) ? [[name, [...items, ...Reflect.get(Object(next), name)]]] : [],
  );
  return Object.assign({}, view, next, Object.fromEntries(arrays));
}

export async function mapped<Value, Mapped>(result: Promise<Result<Value>>, map: (value: Value) => Mapped): Promise<Result<Mapped>> {
  const settled = await result;
  return settled.ok ? { ok: true, value: map(settled.value) } : settled;
}

/** Returns the row with an ID from a list that was searched for it. */
export async function findById<Row extends { id: string }>(searching: Promise<Result<readonly Row[]>>, id: string): Promise<Result<Row>> {
  const rows = await searching;
  if (!rows.ok) return rows;
  const row = rows.value.find((each) => each.id === id);
  return row ? { ok: true, value: row } : { ok: false, failure: refusal('not-found', '') };
}
