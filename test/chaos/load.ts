import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../support/until.ts';
import { isQuick, type Trial } from './attack.ts';
import { callBody, type Scene } from './scene.ts';

/**
 * Repeats `work`, and runs it up to `width` times at once, until `stop` is called, it has run `count` times, or the attack is over. `n`
 * numbers the runs.
 */
export function startCrowd({ cleanup }: Trial, width: number, work: (n: number) => Promise<unknown>, count = Number.POSITIVE_INFINITY) {
  let [isStopped, turn] = [false, 0];
  const isOver = () => isStopped || cleanup.disposed;
  const lanes = Array.from({ length: width }, async () => {
    while (!isOver() && turn < count) await work(turn++);
  });
  return {
    isOver,
    ended: () => Promise.all(lanes),
    /** Waits for work in progress. @returns how many times the work was done */
    async stop(): Promise<number> {
      isStopped = true;
      await Promise.all(lanes);
      return turn;
    },
  };
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
    if (n % 3 === 0 && !crowd.isOver()) await scene.cancel(body.requestId, { url: url(n + 1), campaignId });
    await pause(every);
  }
  const crowd = startCrowd(scene.trial, placers, place, stopAt);

  return {
    stop: crowd.stop,
    /** Waits until this many more calls are acknowledged or the load is stopped. @returns whether they were acknowledged in time */
    more(count: number, within = 20_000): Promise<boolean> {
      const goal = Math.min(acknowledged + count, stopAt);
      return until(() => acknowledged >= goal || crowd.isOver(), within);
    },
  };
}
