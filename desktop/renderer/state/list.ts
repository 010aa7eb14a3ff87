import { type Signal, signal } from '@preact/signals';
import type { Failure, Result } from '../../ipc.ts';
import { handleSessionFailure } from './session.ts';

/**
 * A loaded value, which is kept while it's being reloaded, and also if reloading fails.
 *
 * @property loadedAt when the value arrived, in milliseconds
 * @property tookMs how long loading took
 */
export type Loaded<Value> = { value: Value | null; failure: Failure | null; isLoading: boolean; loadedAt: number; tookMs: number };

/** Waits at least 20 times as long as the last load took, because refreshing a slow list more often would make it slower for everyone. */
const restPerLoad = 20;

/** Something that a screen loads from the core. */
export class Resource<Value> {
  readonly state: Signal<Loaded<Value>>;
  readonly #load: (before: Value | null) => Promise<Result<Value>>;
  #latest = 0;

  /**
   * @param load receives the previously loaded value
   * @param value is shown until the first load has finished
   */
  constructor(load: (before: Value | null) => Promise<Result<Value>>, value: Value | null = null) {
    this.#load = load;
    this.state = signal({ value, failure: null, isLoading: true, loadedAt: 0, tookMs: 0 });
  }

  /** Reloads. Only the last of several concurrent loads is used, whatever order the responses arrive in. */
  async refresh(): Promise<void> {
    this.#latest += 1;
    const load = this.#latest;
    this.state.value = { ...this.state.peek(), isLoading: true };
    const startedAt = Date.now();
    const result = await handleSessionFailure(this.#load(this.state.peek().value));
    if (load !== this.#latest) return;
    this.state.value = result.ok
      ? { value: result.value, failure: null, isLoading: false, loadedAt: Date.now(), tookMs: Date.now() - startedAt }
      : { ...this.state.peek(), failure: result.failure, isLoading: false };
  }

  /** Reloads the value if it's at least this old, unless it's already loading, or the last load failed, because then `useRetries` does. */
  async refreshIfOlder(ms: number): Promise<void> {
    const { isLoading, failure, loadedAt, tookMs } = this.state.peek();
    if (!isLoading && !failure && Date.now() - loadedAt >= Math.max(ms, restPerLoad * tookMs)) await this.refresh();
  }

  /** Replaces the value without a request. The response to a load in progress is then ignored. */
  change(value: Value): void {
    this.#latest += 1;
    this.state.value = { ...this.state.peek(), value, isLoading: false };
  }
}

/** Maps the value of a successful result. */
export async function mapped<Value, Mapped>(result: Promise<Result<Value>>, map: (value: Value) => Mapped): Promise<Result<Mapped>> {
  const settled = await result;
  return settled.ok ? { ok: true, value: map(settled.value) } : settled;
}

/** A list that the core returns in pages. */
export type Paged = { nextCursor: string | null };

/** How a list is loaded page by page. */
export type Pages<View extends Paged> = {
  load: (cursor: string | null) => Promise<Result<View>>;
  /** Joins two pages, with the second one's cursor. */
  join: (view: View, next: View) => View;
  count: (view: View) => number;
  empty: View;
};

/** Loads at least as many items as before, starting from the first one. */
export async function loadAsMany<View extends Paged>({ load, join, count }: Pages<View>, before: View | null): Promise<Result<View>> {
  let result = await load(null);
  while (result.ok && result.value.nextCursor !== null && before !== null && count(result.value) < count(before)) {
    const next = await load(result.value.nextCursor);
    result = next.ok ? { ok: true, value: join(result.value, next.value) } : next;
  }
  return result;
}

/**
 * Adds the next page. Does nothing while the resource still shows the items of another search, because their cursor doesn't continue this
 * one. @returns the failure if the page couldn't be loaded
 */
export async function loadNext<View extends Paged>({ load, join }: Pages<View>, resource: Resource<View>): Promise<Result<View> | null> {
  const { value, loadedAt } = resource.state.peek();
  const cursor = value?.nextCursor ?? null;
  if (cursor === null || loadedAt === 0) return null;
  const result = await handleSessionFailure(load(cursor));
  const view = resource.state.peek().value;
  // In the meantime, a refresh may have loaded other pages.
  if (result.ok && view?.nextCursor === cursor) resource.change(join(view, result.value));
  return result;
}
