import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { settleEvery } from '../../core/dialer/loop.ts';
import { noteChange, type Switch, switches } from './faults.ts';
import { day } from './people.ts';

/** In ms: how often dialers look for due calls, and the shortest interval of housekeeping. */
const pollEvery = 1_000;
const sweepEvery = 60_000;

/** Takes over the timers of dialers and housekeeping, so that a walk through a year doesn't wait for them. Other timers keep running. */
export function takeTimers() {
  const { setTimeout: realTimeout, setInterval: realInterval, clearInterval: realClear } = globalThis;
  const { setTimeout: realPause } = timers;
  const takePause = (taken: typeof realPause) => {
    Object.assign(timers, { setTimeout: taken });
    syncBuiltinESMExports();
  };
  // After an outage, a dialer stores what it knows with the next attempt.
  takePause((ms, ...rest) => realPause(ms === settleEvery ? 5 : ms, ...rest));
  const { clearTimeout: realClearTimeout } = globalThis;
  const polls = new Map<unknown, { of: Switch; wake: () => void }>();
  const sweeps = new Map<unknown, () => void>();
  Object.assign(globalThis, {
    setTimeout: Object.assign((work: () => void, ms?: number, ...rest: unknown[]) => {
      const of = ms === pollEvery && switches.getStore();
      if (!of) return Reflect.apply(realTimeout, globalThis, [work, ms, ...rest]);
      const wake = () => {
        polls.delete(timer);
        work();
      };
      const timer = realTimeout(wake, ms);
      polls.set(timer, { of, wake: work });
      noteChange();
      return timer;
    }, realTimeout),
    clearTimeout(timer: Parameters<typeof realClearTimeout>[0]) {
      polls.delete(timer);
      realClearTimeout(timer);
    },
    setInterval(work: () => void, ms?: number, ...rest: unknown[]) {
      const isSweep = (ms ?? 0) >= sweepEvery;
      // In a walk that takes longer than a minute, housekeeping would run between any two commands.
      const timer = Reflect.apply(realInterval, globalThis, isSweep ? [() => undefined, day] : [work, ms, ...rest]);
      if (isSweep) sweeps.set(timer, work);
      return timer;
    },
    clearInterval(timer: Parameters<typeof realClear>[0]) {
      sweeps.delete(timer);
      realClear(timer);
    },
  });
  return {
    poll() {
      const all = [...polls.values()];
      polls.clear();
      for (const { wake } of all) wake();
    },
    isIdle: (core: Switch) => polls.values().some(({ of }) => of === core),
    sweep: () => {
      for (const sweep of sweeps.values()) sweep();
    },
    giveBack() {
      takePause(realPause);
      Object.assign(globalThis, { setTimeout: realTimeout, clearTimeout: realClearTimeout });
      Object.assign(globalThis, { setInterval: realInterval, clearInterval: realClear });
    },
  };
}
