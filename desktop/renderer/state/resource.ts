import { type Signal, signal } from '@preact/signals';
import type { Failure, Result } from '../../ipc.ts';
import { ask } from './session.ts';

/** What has been loaded of something so far. A value stays while it is loaded anew, and when that fails. */
export type Loaded<Value> = { value: Value | null; failure: Failure | null; isLoading: boolean };

/** Something in the core that a screen shows. */
export class Resource<Value> {
  readonly state: Signal<Loaded<Value>> = signal({ value: null, failure: null, isLoading: true });
  readonly #load: () => Promise<Result<Value>>;
  #turn = 0;

  constructor(load: () => Promise<Result<Value>>) {
    this.#load = load;
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
