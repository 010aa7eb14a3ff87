import { setTimeout as pause } from 'node:timers/promises';
import { callBody, eventually, type Scene } from './environment.ts';

export type Load = {
  acknowledged(): number;
  /** Waits for so many more to be acknowledged. @returns whether they were, in time */
  more(count: number, within?: number): Promise<boolean>;
  stop(): Promise<void>;
};

let loads = 0;

/** Placers that repeat what was not acknowledged, as integrators do, and cancel every third call. Every sixth has no request id, and each try is a call of its own. */
export function startLoad(
  scene: Scene,
  options: { placers?: number; every?: number; url?: (turn: number) => string; extra?: object; stopAt?: number; cancels?: boolean } = {},
): Load {
  const {
    placers = scene.trial.isQuick ? 4 : 16,
    every = 40,
    url = () => scene.core().url,
    extra = {},
    stopAt = Number.POSITIVE_INFINITY,
    cancels = true,
  } = options;
  const { ledger, campaignId, key } = scene;
  const name = `load${++loads}`;
  let isRunning = true;
  let turn = 0;
  let acknowledged = 0;

  async function place(n: number): Promise<void> {
    const body = callBody(`${name}-${n}`, extra);
    while (isRunning) {
      const { requestId: _, ...anonymous } = callBody('', extra);
      const { status } = await ledger.place(url(n), campaignId, key, n % 6 === 1 ? anonymous : body);
      if (status === 202) break;
      await pause(200);
    }
    acknowledged++;
    if (cancels && n % 3 === 0 && isRunning) await ledger.cancel(url(n + 1), campaignId, key, body.requestId);
  }

  const running = Array.from({ length: placers }, async (_, first) => {
    await pause((every * first) / placers);
    while (isRunning && turn < stopAt) {
      await place(turn++);
      await pause(every);
    }
  });
  const stop = async () => {
    isRunning = false;
    await Promise.all(running);
  };
  scene.trial.cleanup.defer(() => {
    isRunning = false;
  });
  return {
    acknowledged: () => acknowledged,
    stop,
    async more(count, within = 20_000) {
      const goal = Math.min(acknowledged + count, stopAt);
      return eventually(() => acknowledged >= goal, within);
    },
  };
}

/** Does `work` for every number below `count`, `width` at once. */
export async function inParallel(count: number, width: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) await work(next++);
    }),
  );
}
