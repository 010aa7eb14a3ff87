import { type Signal, signal } from '@preact/signals';
import type { Failure, Result } from '../../ipc.ts';
import { handleSessionFailure } from './session.ts';

/**
 * The value stays while it reloads, and when reloading fails.
 *
 * @property loadedAt when the value came, in milliseconds
 */
export type Loaded<Value> = { value: Value | null; failure: Failure | null; isLoading: boolean; loadedAt: number };

/** Something that a screen loads from the core. */
export class Resource<Value> {
  readonly state: Signal<Loaded<Value>>;
  readonly #load: (before: Value | null) => Promise<Result<Value>>;
  #latest = 0;

  /**
   * @param load gets what was loaded before
   * @param value shows until the first load has finished
   */
  constructor(load: (before: Value | null) => Promise<Result<Value>>, value: Value | null = null) {
    this.#load = load;
    this.state = signal({ value, failure: null, isLoading: true, loadedAt: 0 });
  }

  /** Reloads. Of concurrent loads only the last one counts, whatever order the answers come in. */
  async refresh(): Promise<void> {
    this.#latest += 1;
    const load = this.#latest;
    this.state.value = { ...this.state.peek(), isLoading: true };
    const result = await handleSessionFailure(this.#load(this.state.peek().value));
    if (load !== this.#latest) return;
    this.state.value = result.ok
      ? { value: result.value, failure: null, isLoading: false, loadedAt: Date.now() }
      : { ...this.state.peek(), failure: result.failure, isLoading: false };
  }

  /** Replaces the value without a request. The answer of a load that is under way no longer counts. */
  change(value: Value): void {
    this.#latest += 1;
    this.state.value = { ...this.state.peek(), value, isLoading: false };
  }
}
