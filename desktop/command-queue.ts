import type { Command } from './ipc.ts';

/** Keeps commands that arrive while nothing listens, and delivers them in order to the next listener: a click in the menu is never lost. */
export class CommandQueue {
  #waiting: Command[] = [];
  #listener: ((command: Command) => void) | null = null;

  push(command: Command): void {
    if (this.#listener) this.#listener(command);
    else this.#waiting.push(command);
  }

  /**
   * Replaces the listener.
   *
   * @returns stops listening
   */
  listen(listener: (command: Command) => void): () => void {
    this.#listener = listener;
    for (const command of this.#waiting.splice(0)) listener(command);
    return () => {
      if (this.#listener === listener) this.#listener = null;
    };
  }
}
