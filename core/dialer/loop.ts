import type { Logger } from 'pino';
import {
  type ClaimedCall,
  type DialingStore,
  dialingLimits,
  ended,
  mayHandOff,
  type Provider,
  type Settlement,
  settlementOf,
} from '../domain/dialing.ts';
import type { Clock } from '../domain/ports.ts';

export type DialerObserver = {
  onClaim(calls: number): void;
  onHandoff(result: string): void;
  onLeaseLost(): void;
  onOutcome(state: string): void;
};

export type Dialer = {
  /** Looks for due calls now, instead of at the next turn. */
  wake(): void;
  /** Claims nothing more, and waits for the hand-offs that are under way. */
  close(): Promise<void>;
};

/** How often an idle dialer looks for due calls, in ms: other processes place calls, too. */
const pollEvery = 1_000;
/** How often a settlement is tried again, in ms. */
const settleEvery = 500;

/** Hands due calls to the provider, `concurrency` at once at the most. Any number of these may work on one database. */
export function startDialer(deps: {
  store: DialingStore;
  provider: Provider;
  concurrency: number;
  clock: Clock;
  random: () => number;
  log: Logger;
  observer: DialerObserver;
}): Dialer {
  const { store, provider, clock, log, observer } = deps;
  const underWay = new Set<Promise<void>>();
  let isClosing = false;
  let isAwake = false;
  let rouse = () => {};

  function wake(): void {
    isAwake = true;
    rouse();
  }

  /** Until it is woken, or until the next turn. */
  async function rest(): Promise<void> {
    if (!isAwake) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pollEvery);
        rouse = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    isAwake = false;
  }

  let lastClaimAt = clock.millis();

  async function claim(limit: number): Promise<ClaimedCall[]> {
    const now = clock.millis();
    if (now < lastClaimAt - dialingLimits.clockSkew.toMillis()) await store.recoverFromClockStep(now);
    lastClaimAt = now;
    const claimed = await store.claim(limit, provider.name, now, now + dialingLimits.lease.toMillis());
    if (claimed.length > 0) observer.onClaim(claimed.length);
    return claimed;
  }

  async function dial(call: ClaimedCall): Promise<void> {
    await settle(call, await attempt(call));
  }

  /** What an attempt came to is known only here: a database that is away for a moment must not make it be forgotten. */
  async function settle(call: ClaimedCall, settlement: Settlement): Promise<void> {
    for (;;) {
      try {
        if (!(await store.settle(call, settlement))) observer.onLeaseLost();
        return;
      } catch (error) {
        if (isClosing || clock.now().toMillis() >= call.leaseUntil) throw error;
        await new Promise((resolve) => setTimeout(resolve, settleEvery));
      }
    }
  }

  async function attempt(call: ClaimedCall): Promise<Settlement> {
    const now = clock.now().toMillis();
    if (call.handoff === 'taken') {
      const made = call.provider === provider.name ? provider.conclude(call) : null;
      if (made) observer.onOutcome(made.state);
      const conclusion = made ?? ended('unknown', 'No outcome was reported in time.', now);
      return { ...conclusion, kind: 'ended' };
    }
    if (!mayHandOff(call, provider)) {
      observer.onHandoff('doubt');
      return ended('unknown', 'The provider may have got this call, but its answer was lost.', now);
    }
    if (call.notAfter !== null && now > call.notAfter) {
      return ended(call.handoff === 'doubt' ? 'unknown' : 'failed', 'Its time had passed before the provider took it.', now);
    }
    // A process that was stopped for a while may find that its lease has run out, and that somebody else has the call.
    if (now >= call.leaseUntil) return { kind: 'retry', dueAt: now, handoff: call.handoff === 'doubt' ? 'doubt' : 'retry' };
    const result = await provider.handOff(call);
    observer.onHandoff(result.kind);
    return settlementOf(call, result, provider, clock, deps.random);
  }

  async function turn(): Promise<void> {
    const free = deps.concurrency - underWay.size;
    const claimed = free > 0 ? await claim(free) : [];
    for (const call of claimed) {
      const dialing = dial(call)
        // The lease runs out, and the call is looked at again.
        .catch((err) => log.warn({ err, contactId: call.contactId }, 'hand-off not settled'))
        .finally(() => {
          underWay.delete(dialing);
          wake();
        });
      underWay.add(dialing);
    }
    if (claimed.length === 0) await rest();
  }

  const running = (async () => {
    while (!isClosing) {
      await turn().catch(async (err) => {
        log.warn({ err }, 'claiming calls failed');
        await rest();
      });
    }
  })();

  return {
    wake,
    async close() {
      isClosing = true;
      wake();
      await running;
      await Promise.all(underWay);
    },
  };
}
