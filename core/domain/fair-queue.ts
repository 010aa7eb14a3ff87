/** Widest first: networks within networks, or one key, user or lane. Its last name is unique. */
type Share = readonly string[];

type Limits = {
  /** How many may wait. If there are more, the largest share loses its newest. May be lower while turns take longer. */
  waiting?: () => number;
  inShare?: number;
  /** In ms: how long each may wait. */
  wait?: number;
};

/** Why a wait is over: its turn has come, the queue was full, or it took too long. */
type Result = 'turn' | 'full' | 'late';
/** The domain has no timers of its own: pass `setTimeout`. */
type StartTimer = (run: () => void, ms: number) => Disposable;

type Waiting = { share: Share; since: number; end(result: Result): void };
/** @property served when the share had its last turn; 0 if that's forgotten */
type Group = { name: string; since: number; served: number; size: number; parts: Map<string, Group>; members: Waiting[] };

/** Shares to remember: about 5 MB, or ten seconds of two thousand attempts per second. */
const maxTurnedAway = 20_000;
/** Each turn adds a few. */
const maxServed = 2_000;

/**
 * A bounded queue in which shares take turns, and so do the smaller shares within each of them. The share that has been trying for the
 * longest time goes first. A share that was turned away keeps its place in the order, without using memory for each attempt of a flood. So
 * shares that never return don't delay others, and K shares that do return delay others by K turns.
 *
 * The queue doesn't know how many may have a turn at the same time: its owner calls `startNext`.
 */
export class FairQueue {
  readonly #limits: Limits;
  readonly #startTimer: StartTimer;
  readonly #root = createGroup('');
  /** Counts arrivals and turns, because only the order matters. */
  #now = 0;
  /** When each share began trying without success. */
  readonly #turnedAway = new Map<string, number>();
  readonly #served = new Map<string, number>();

  constructor(limits: Limits, startTimer: StartTimer) {
    this.#limits = limits;
    this.#startTimer = startTimer;
  }

  get length(): number {
    return this.#root.size;
  }

  wait(share: Share, ms?: number): Promise<Result> {
    return new Promise((resolve) => this.add(share, resolve, ms));
  }

  add(share: Share, onEnd: (result: Result) => void, ms = this.#limits.wait): void {
    const timer = ms === undefined ? undefined : this.#startTimer(() => this.#remove(waiting).end('late'), ms);
    const waiting: Waiting = {
      share,
      since: this.#turnedAway.get(share.at(-1) ?? '') ?? ++this.#now,
      end(result) {
        timer?.[Symbol.dispose]();
        onEnd(result);
      },
    };
    const { size } = this.#insert(waiting);
    if (size > (this.#limits.inShare ?? size)) this.#remove(waiting).end('full');
    for (const max = this.#limits.waiting?.() ?? this.length; this.length > max; ) this.#turnAway();
  }

  /** @param mayStart whether one of this (widest) share may start now @returns the widest share of who has started; null if no one may */
  startNext(mayStart?: (name: string) => boolean): string | null {
    const widest = first(this.#root, mayStart);
    if (!widest) return null;
    let group = widest;
    for (let part = first(group); part; part = first(group)) group = part;
    const [next] = group.members;
    if (!next) throw new Error('A share without members is waiting.');
    this.#turnedAway.delete(group.name);
    this.putLast(next.share);
    this.#remove(next).end('turn');
    return widest.name;
  }

  /** Puts a share behind all others. `startNext` does this, too, so this is for a turn that has lasted until now. */
  putLast(share: Share): void {
    if (this.length === 0) return;
    const now = ++this.#now;
    let group: Group | undefined = this.#root;
    for (const name of share) {
      group = group?.parts.get(name);
      if (group) group.served = now;
      else remember(this.#served, name, now, maxServed);
    }
  }

  /** Takes the newest of the largest share, and of the largest within it. */
  #turnAway(): void {
    let group = this.#root;
    for (let part = largest(group); part; part = largest(group)) group = part;
    const last = group.members.at(-1);
    if (!last) throw new Error('A share without members is waiting.');
    remember(this.#turnedAway, group.name, last.since, maxTurnedAway);
    this.#remove(last).end('full');
  }

  /** @returns the group of its narrowest share */
  #insert(waiting: Waiting): Group {
    let group = this.#root;
    group.size++;
    for (const name of waiting.share) {
      const part = group.parts.get(name) ?? createGroup(name, waiting.since, this.#served.get(name) ?? 0);
      group.parts.set(name, part);
      group = part;
      group.size++;
      group.since = Math.min(group.since, waiting.since);
    }
    group.members.push(waiting);
    return group;
  }

  #remove(waiting: Waiting): Waiting {
    let group = this.#root;
    group.size--;
    for (const name of waiting.share) {
      const part = group.parts.get(name) ?? createGroup(name);
      part.size--;
      if (part.size === 0) {
        group.parts.delete(name);
        if (part.served > 0) remember(this.#served, name, part.served, maxServed);
      }
      group = part;
    }
    group.members.splice(group.members.indexOf(waiting), 1);
    // Once the queue is empty, the order no longer matters.
    if (this.length === 0) for (const memory of [this.#turnedAway, this.#served]) if (memory.size > 0) memory.clear();
    return waiting;
  }
}

/**
 * Returns a function that starts the next in one of two queues: those in `urgent` first, but never more than `maxInARow` of them while
 * someone waits in `other`. It returns whether someone has started.
 */
export function inOrder(urgent: FairQueue, other: FairQueue, maxInARow: number): () => boolean {
  let inARow = 0;
  return () => {
    const queues = inARow < maxInARow ? [urgent, other] : [other, urgent];
    const queue = queues.find((each) => each.startNext() !== null);
    inARow = queue === urgent ? inARow + 1 : 0;
    return queue !== undefined;
  };
}

function createGroup(name: string, since = 0, served = 0): Group {
  return { name, since, served, size: 0, parts: new Map(), members: [] };
}

function order({ since, served }: Group): number {
  return Math.max(since, served);
}

function first({ parts }: Group, mayStart?: (name: string) => boolean): Group | undefined {
  let best: Group | undefined;
  for (const part of parts.values()) if ((!best || order(part) < order(best)) && (!mayStart || mayStart(part.name))) best = part;
  return best;
}

/** Returns the part with the most members and, among several of this size, the one whose turn comes last. */
function largest({ parts }: Group): Group | undefined {
  let best: Group | undefined;
  for (const part of parts.values()) if (!best || (part.size - best.size || order(part) - order(best)) >= 0) best = part;
  return best;
}

function remember(memory: Map<string, number>, key: string, value: number, max: number): void {
  memory.delete(key);
  memory.set(key, value);
  const [oldest] = memory.keys();
  if (memory.size > max && oldest !== undefined) memory.delete(oldest);
}

/** A turn to use the database, for work that may take a long time. */
export type Turn = {
  /** Lets waiting requests go first. @returns false if the work must stop and return what it has so far */
  yieldTurn(): Promise<boolean>;
  /** Waits without keeping the turn from the user's other requests. One call at a time, because the request has only one turn. */
  rest(ms: number): Promise<void>;
};
