import { setTimeout as pause } from 'node:timers/promises';
import { isQuick, type Trial } from './attack.ts';
import { callBody, eventually, type Scene } from './scene.ts';

/** Repeats `work` in this many lanes until it's stopped or has run `until` times. `n` counts the runs of all lanes. */
export function startCrowd(trial: Trial, width: number, work: (n: number) => Promise<unknown>, until = Number.POSITIVE_INFINITY) {
  let [isOver, turn] = [false, 0];
  trial.cleanup.defer(() => {
    isOver = true;
  });
  const lanes = Array.from({ length: width }, async () => {
    while (!isOver && turn < until) await work(turn++);
  });
  return {
    isOver: () => isOver,
    /** Waits for work in progress. @returns how often the work was done */
    async stop(): Promise<number> {
      isOver = true;
      await Promise.all(lanes);
      return turn;
    },
    ended: () => Promise.all(lanes),
  };
}

/** Does `work` for every number below `count`, `width` at a time. */
export async function inParallel(trial: Trial, count: number, width: number, work: (n: number) => Promise<unknown>): Promise<void> {
  await startCrowd(trial, width, work, count).ended();
}

export type Load = ReturnType<typeof startLoad>;

type LoadOptions = {
  placers?: number;
  /** The pause in ms between a placer's calls. */
  every?: number;
  url?: (n: number) => string;
  extra?: object;
  stopAt?: number;
  campaignId?: string;
};

let loads = 0;

/**
 * Placers that retry unacknowledged calls, like integrators, and cancel every third call. Every sixth has no request ID, so each of its
 * attempts is a separate call.
 */
export function startLoad(scene: Scene, { every = 40, extra = {}, stopAt = Number.POSITIVE_INFINITY, ...options }: LoadOptions = {}) {
  const { placers = isQuick ? 4 : 16, url = () => scene.core().url, campaignId = scene.campaignId } = options;
  const name = `load${++loads}`;
  let acknowledged = 0;

  async function place(n: number): Promise<void> {
    if (n < placers) await pause((every * n) / placers);
    const body = callBody(`${name}-${n}`, extra);
    while (!crowd.isOver()) {
      const { requestId: _, ...anonymous } = callBody('', extra);
      if ((await scene.place(n % 6 === 1 ? anonymous : body, { url: url(n), campaignId })).status === 202) break;
      await pause(200);
    }
    acknowledged++;
    if (n % 3 === 0 && !crowd.isOver()) await scene.ledger.cancel(url(n + 1), campaignId, scene.key, body.requestId);
    await pause(every);
  }
  const crowd = startCrowd(scene.trial, placers, place, stopAt);

  return {
    acknowledged: () => acknowledged,
    stop: crowd.stop,
    /** Waits until this many more calls are acknowledged or the load is stopped. @returns whether they were acknowledged in time */
    async more(count: number, within = 20_000): Promise<boolean> {
      const goal = Math.min(acknowledged + count, stopAt);
      return eventually(() => acknowledged >= goal || crowd.isOver(), within);
    },
  };
}
