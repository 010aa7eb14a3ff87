/** Compares two vectors by their first difference; 0 if one begins with the other. */
function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? value);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The number of turned-away networks to remember: about 5 MB, or ten seconds of two thousand attempts per second. */
const maxTurnedAway = 20_000;
/** The number of networks to remember that have had a turn. Each turn adds a few. */
const maxServed = 2_000;

/** The networks that an item comes from, widest first. */
type Path = readonly string[];
type Entry<Item> = { item: Item; path: Path; since: number };

/**
 * A bounded queue in which networks take turns, and so do the smaller networks within each of them. The network that has been trying for
 * the longest time goes first. A network that was turned away keeps its place in the order, without using memory for each attempt of a
 * flood. So networks that never return don't delay others, and K networks that do return delay others by K turns.
 */
export class FairQueue<Item> {
  readonly #max: () => number;
  #waiting: Entry<Item>[] = [];
  /** Counts arrivals and turns, because only the order matters. */
  #now = 0;
  /** When each network began trying without success. */
  readonly #turnedAway = new Map<string, number>();
  /** When each network had its last turn. */
  readonly #served = new Map<string, number>();

  /** @param max returns the maximum number of waiting items, which is lower if turns take longer */
  constructor(max: () => number) {
    this.#max = max;
  }

  /**
   * @returns the items to drop because the queue is full, which may include this one. Each is the newest item of the network with the most
   * waiting items
   */
  add(path: Path, item: Item): Item[] {
    this.#waiting.push({ item, path, since: this.#turnedAway.get(formatPath(path)) ?? ++this.#now });
    const excess = Math.max(0, this.#waiting.length - this.#max());
    return Array.from({ length: excess }, () => this.#turnAway()).filter((turnedAway) => turnedAway !== null);
  }

  #turnAway(): Item | null {
    const counts = this.#counts();
    const share = ({ path }: Entry<Item>) => path.map((prefix) => counts.get(prefix) ?? 0);
    const last = this.#remove((a, b) => (compare(share(a), share(b)) || compare(this.#order(a), this.#order(b))) >= 0);
    if (!last) return null;
    remember(this.#turnedAway, formatPath(last.path), last.since, maxTurnedAway);
    return last.item;
  }

  /** Takes the item whose turn it is. */
  take(): Item | null {
    const next = this.#remove((entry, best) => compare(this.#order(entry), this.#order(best)) < 0);
    if (!next) return null;
    this.#turnedAway.delete(formatPath(next.path));
    const now = ++this.#now;
    for (const prefix of next.path) remember(this.#served, prefix, now, maxServed);
    // Once the queue is empty, the order no longer matters.
    if (this.#waiting.length === 0) for (const memory of [this.#turnedAway, this.#served]) memory.clear();
    return next.item;
  }

  /** @returns whether the item was waiting */
  remove(item: Item): boolean {
    const before = this.#waiting.length;
    this.#waiting = this.#waiting.filter((entry) => entry.item !== item);
    return this.#waiting.length < before;
  }

  /**
   * Returns when each of the item's networks began waiting: when the item arrived (or an earlier one that was turned away), or at the
   * network's last turn, whichever is later.
   */
  #order({ path, since }: Entry<Item>): number[] {
    return path.map((prefix) => Math.max(since, this.#served.get(prefix) ?? 0));
  }

  #counts(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { path } of this.#waiting) for (const prefix of path) counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
    return counts;
  }

  #remove(isBetter: (entry: Entry<Item>, best: Entry<Item>) => boolean): Entry<Item> | undefined {
    const [first, ...others] = this.#waiting;
    if (!first) return undefined;
    const best = others.reduce((best, entry) => (isBetter(entry, best) ? entry : best), first);
    this.#waiting.splice(this.#waiting.indexOf(best), 1);
    return best;
  }
}

/** Returns the narrowest network. */
function formatPath(path: Path): string {
  return path.at(-1) ?? '';
}

function remember(memory: Map<string, number>, key: string, value: number, max: number): void {
  memory.delete(key);
  memory.set(key, value);
  const [oldest] = memory.keys();
  if (memory.size > max && oldest !== undefined) memory.delete(oldest);
}
