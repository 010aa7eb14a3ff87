type SharedQueue<Item> = {
  length(): number;
  /** Adds an item. @returns the item that doesn't fit, if any: this one, or the newest of the share with the most items */
  add(item: Item): Item | undefined;
  /**
   * Takes up to `count` items: the first of each share, then the second of each, and so on.
   *
   * @param bytes stops before an item that would exceed this sum, unless it's the first
   * @param perShare the maximum number of items of one share
   */
  take(count: number, bytes?: number, perShare?: number): Item[];
  /** Drops items that are no longer needed. */
  keep(isWanted: (item: Item) => boolean): void;
};

/**
 * Creates a queue in which each key or address has a share, so that a flood delays only itself. If the queue is full, the share with the
 * most items loses one.
 */
export function sharedQueue<Item>(
  room: number,
  getShare: (item: Item) => string,
  countBytes: (item: Item) => number = () => 0,
): SharedQueue<Item> {
  let waiting: Item[] = [];
  /**
   * The number of items in each share. Counted only while the queue is full, because counting all the time would cost each request more
   * than the queue itself.
   */
  let counts: Map<string, number> | undefined;

  /**
   * Makes room for an item of `share`: removes the newest item of the share with the most items, unless `share` would then have as many.
   */
  function makeRoom(share: string): Item | undefined {
    counts ??= countByShare(waiting, getShare);
    // Every share has only one item, so there's no longest one.
    if (counts.size >= room) return undefined;
    const [longest, max] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a));
    if ((counts.get(share) ?? 0) + 1 >= max) return undefined;
    counts.set(longest, max - 1);
    const newest = waiting.findLastIndex((item) => getShare(item) === longest);
    return waiting.splice(newest, 1)[0];
  }

  /** Returns how many items can be taken from the start without exceeding `count` and `bytes`. The first item is always taken. */
  function fitting(items: readonly Item[], count: number, bytes: number): number {
    const max = Math.min(count, items.length);
    let sum = 0;
    for (const [index, item] of items.slice(0, max).entries()) {
      sum += countBytes(item);
      if (sum > bytes && index > 0) return index;
    }
    return max;
  }

  return {
    length: () => waiting.length,
    add(item) {
      let dropped: Item | undefined;
      if (waiting.length >= room) {
        const share = getShare(item);
        dropped = makeRoom(share);
        if (dropped === undefined) return item;
        counts?.set(share, (counts.get(share) ?? 0) + 1);
      }
      waiting.push(item);
      return dropped;
    },
    take(count, bytes = Number.POSITIVE_INFINITY, perShare = count) {
      counts = undefined;
      let max = count;
      if (fitting(waiting, Math.min(count, perShare), bytes) < waiting.length) {
        const rounds = inRounds(waiting, getShare);
        waiting = rounds.flat();
        max = Math.min(
          count,
          rounds.slice(0, perShare).reduce((sum, { length }) => sum + length, 0),
        );
      }
      return waiting.splice(0, fitting(waiting, max, bytes));
    },
    keep(isWanted) {
      counts = undefined;
      waiting = waiting.filter(isWanted);
    },
  };
}

/** Returns the first item of each share, then the second of each, and so on. */
function inRounds<Item>(items: readonly Item[], getShare: (item: Item) => string): Item[][] {
  const counts = new Map<string, number>();
  const rounds: Item[][] = [];
  for (const item of items) {
    const share = getShare(item);
    const nth = counts.get(share) ?? 0;
    counts.set(share, nth + 1);
    const round = rounds[nth];
    if (round) round.push(item);
    else rounds.push([item]);
  }
  return rounds;
}

function countByShare<Item>(items: readonly Item[], getShare: (item: Item) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(getShare(item), (counts.get(getShare(item)) ?? 0) + 1);
  return counts;
}
