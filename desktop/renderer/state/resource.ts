import { type Signal, signal } from '@preact/signals';
import type { Failure, Result } from '../../ipc.ts';
import { ask } from './session.ts';

/** What has been loaded of something so far. A value stays while it is loaded anew, and when that fails. */
export type Loaded<Value> = { value: Value | null; failure: Failure | null; isLoading: boolean };

/** Something in the core that a screen shows. */
export class Resource<Value> {
  readonly state: Signal<Loaded<Value>>;
  readonly #load: () => Promise<Result<Value>>;
  #turn = 0;

  /** @param value to be shown until there is a newer one */
  constructor(load: () => Promise<Result<Value>>, value: Value | null = null) {
    this.#load = load;
    this.state = signal({ value, failure: null, isLoading: true });
  }

  /** Loads it anew. Of several at once the last one counts, in whichever order they come back. */
  async refresh(): Promise<void> {
    this.#turn += 1;
    const turn = this.#turn;
    this.state.value = { ...this.state.peek(), isLoading: true };
    const result = await ask(this.#load());
    if (turn !== this.#turn) return;
    this.state.value = result.ok
      ? { value: result.value, failure: null, isLoading: false }
      : { value: this.state.peek().value, failure: result.failure, isLoading: false };
  }

  /** Puts in what is known without asking. */
  change(value: Value): void {
    this.state.value = { ...this.state.peek(), value };
  }
}
