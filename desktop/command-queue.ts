/**
 * Keeps commands that arrive while no one is listening, and delivers them in order to the next listener, so that no click in the menu is
 * lost.
 */
export class CommandQueue<Command> {
  #waiting: Command[] = [];
  #listener: ((command: Command) => void) | null = null;

  push(command: Command): void {
    if (this.#listener) this.#listener(command);
    else this.#waiting.push(command);
  }

  /**
   * Replaces the listener.
   *
   * @returns a function that stops listening
   */
  listen(listener: (command: Command) => void): () => void {
    this.#listener = listener;
    for (const command of this.#waiting.splice(0)) listener(command);
    return () => {
      if (this.#listener === listener) this.#listener = null;
    };
  }
}
