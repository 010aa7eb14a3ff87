/** In ms. */
const delay = 10;

/**
 * Handles items together, a few milliseconds after they were added, so that they don't delay responses. Even work that starts right after a
 * response would delay a client on the same processor.
 */
export function later<Item>(handle: (item: Item) => void) {
  let waiting: Item[] = [];
  function finish(): void {
    const taken = waiting;
    waiting = [];
    for (const item of taken) handle(item);
  }
  return {
    add(item: Item): void {
      if (waiting.push(item) === 1) setTimeout(finish, delay).unref();
    },
    /** Handles what's left, before closing. */
    finish,
  };
}
