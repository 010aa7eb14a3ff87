import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Pace } from '#contract/protection/dialing.ts';
import type { Settlement } from '../domain/calls/call-states.ts';
import { dialingLimits, mayBegin, nextStep, putBack, toSettlement } from '../domain/calls/dialing.ts';
import { clockSkew } from '../domain/deadlines.ts';
import { type Millis, plus } from '../domain/instant.ts';
import type { ClaimedCall, Clock, DialingStore, HandoffResult, Provider } from '../domain/ports.ts';

export type DialerObserver = {
  onClaim(calls: number): void;
  onHandoff(result: string): void;
  onResult(result: HandoffResult): void;
  onLeaseLost(): void;
  onOutcome(state: string): void;
};

export type Dialer = {
  wake(): void;
  /** Stops claiming calls, and waits for the hand-offs in flight. */
  close(): Promise<void>;
};

/** In ms. Polling is necessary because other processes also place calls, and don't notify this one. */
const pollEvery = 1_000;
/** In ms. Must be much shorter than the lease, because saving a result is retried only until the lease expires. */
export const settling = { every: 500 };

/** Whether calls may leave later than their pace or claim allows. */
export const departures = { mayBeLate: false };

/** The last call of a claim that has left within its pace: its moment, and how much later it left, in ms. */
type Line = { at: number; lateness: number };

/**
 * In ms: how much shorter the time between two calls may become. Claims make it longer by as much (`storage/dialing/pace.ts`). Timers aren't
 * exact enough for shorter ones than a few milliseconds.
 */
const tolerance = (between: number) => (between < 10 ? 10 : between / 25);

/** Waits for a call's moment. If the one before it left late, so does this one. @returns false if it's too late for the call's pace */
async function mayLeave({ leaves }: ClaimedCall, line: Line): Promise<boolean> {
  if (leaves === null) return true;
  for (;;) {
    const at = leaves.at + Math.max(0, line.lateness - tolerance(leaves.at - line.at));
    const now = performance.now();
    if (now > leaves.by && !departures.mayBeLate) return false;
    if (now >= at) break;
    await delay(at - now);
  }
  Object.assign(line, { at: leaves.at, lateness: performance.now() - leaves.at });
  return true;
}

/** Only schedules: domain/calls/dialing.ts decides what happens to a call, and storage makes sure that only one process claims it. */
export function startDialer(deps: {
  store: DialingStore;
  provider: Provider;
  /** Hand-offs at the same time. */
  concurrency: number;
  /** Of all calls together; null for any. */
  pace: Pace | null;
  clock: Clock;
  isTrusted: (now: Millis) => Promise<boolean>;
  random: () => number;
  log: Logger;
  observer: DialerObserver;
}): Dialer {
  const { store, provider, clock, log, observer } = deps;
  const inFlight = new Set<Promise<void>>();
  let isClosing = false;
  let isNotified = false;
  let notify = () => {};

  function wake(): void {
    isNotified = true;
    notify();
  }

  async function idle(wait: number | null): Promise<void> {
    if (!isNotified) {
      await new Promise<void>((resolve) => {
        const poll = () => resolve();
        const timer = setTimeout(poll, Math.min(pollEvery, Math.max(1, wait ?? pollEvery)));
        notify = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    isNotified = false;
  }

  let lastClaimAt = clock.now();

  async function claim(limit: number): Promise<ClaimedCall[]> {
    const now = clock.now();
    if (!(await deps.isTrusted(now))) {
      // Remember this time although it's wrong, so that the next claim notices if the clock has been set back. Otherwise, calls placed in
      // the meantime would become due much too late.
      lastClaimAt = now;
      return [];
    }
    if (now < lastClaimAt - clockSkew.toMillis()) await store.recoverFromClockStep(now, true);
    lastClaimAt = now;
    const claimed = await store.claim(limit, provider.name, now, plus(now, dialingLimits.lease.toMillis()), deps.pace, lateness);
    if (claimed.length > 0) observer.onClaim(claimed.length);
    return claimed;
  }

  /** In ms: how late calls have recently left. The next claims leave more time between them. */
  let lateness = 0;

  async function dial(call: ClaimedCall, line: Line): Promise<void> {
    const isInTime = (await mayLeave(call, line)) && (departures.mayBeLate || mayBegin(call, performance.now()));
    if (call.leaves) lateness = Math.max(performance.now() - call.leaves.at, lateness * 0.95);
    const step = isInTime ? nextStep(call, provider, clock.now()) : putBack(call, clock.now());
    if (step === 'hand-off') return settle(call, await handOff(call), true);
    if (step.event === 'outcome') observer.onOutcome(step.to);
    if (step.event === 'must-not-repeat') observer.onHandoff('doubt');
    return settle(call, step, false);
  }

  async function handOff(call: ClaimedCall): Promise<Settlement> {
    const result = await provider.handOff(call);
    observer.onHandoff(result.kind);
    observer.onResult(result);
    return toSettlement(call, result, provider, clock.now(), deps.random);
  }

  /** Retries while the lease lasts, because only this process knows the result, and it must not be lost in a short database outage. */
  async function settle(call: ClaimedCall, settlement: Settlement, isAttempt: boolean): Promise<void> {
    for (;;) {
      try {
        if (!(await store.settle(call, settlement, isAttempt))) observer.onLeaseLost();
        return;
      } catch (error) {
        if (isClosing || clock.now() >= call.leaseUntil) throw error;
        await delay(settling.every);
      }
    }
  }

  async function poll(): Promise<void> {
    const free = deps.concurrency - inFlight.size;
    const claimed = free > 0 ? await claim(free) : [];
    const line = { at: 0, lateness: 0 };
    for (const call of claimed.toSorted((a, b) => (a.leaves?.at ?? 0) - (b.leaves?.at ?? 0))) {
      const dialing = dial(call, line)
        // Nothing else to do: when the lease has expired, a dialer claims the call again.
        .catch((err) => log.warn({ err, contactId: call.contactId }, "couldn't record the hand-off's result"))
        .finally(() => {
          inFlight.delete(dialing);
          wake();
        });
      inFlight.add(dialing);
    }
    if (claimed.length === 0) await idle(await store.nextInPace());
  }

  const running = (async () => {
    while (!isClosing) {
      await poll().catch(async (err) => {
        log.warn({ err }, 'claiming calls failed');
        await idle(null);
      });
    }
  })();

  return {
    wake,
    async close() {
      isClosing = true;
      wake();
      await running;
      await Promise.all(inFlight);
    },
  };
}
