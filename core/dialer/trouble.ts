import type { Logger } from 'pino';
import { troubleLimits } from '../domain/calls/dialing.ts';
import { type Millis, plus } from '../domain/instant.ts';
import type { Clock, DialerTrouble, DialingStore, HandoffResult } from '../domain/ports.ts';

/** Detects when the provider isn't accepting calls, and reports it in the log, in the database for the console, and in the metrics. */
export type TroubleWatch = {
  onResult(result: HandoffResult): void;
  /** Between the first and the latest refused call; 0 if the provider accepts calls, or if no call is waiting for it. */
  seconds(): number;
  close(): Promise<void>;
};

/** @param core this process's name among the cores on the database */
export function watchTrouble(core: string, deps: { store: DialingStore; clock: Clock; log: Logger }): TroubleWatch {
  const { store, clock, log } = deps;
  let failing: (DialerTrouble & { lastAt: Millis; forgottenAt: number; handoffs: number }) | null = null;
  let isNoted = false;
  let noting: Promise<void> = Promise.resolve();

  const isTrouble = () => failing !== null && failing.lastAt - failing.since >= troubleLimits.after.toMillis();

  function note(trouble: DialerTrouble | null): void {
    isNoted = trouble !== null;
    noting = noting
      .then(() => store.noteTrouble(core, trouble, clock.now()))
      .catch((err) => log.warn({ err }, "couldn't record that the provider isn't accepting calls"));
  }

  function end(message: string): void {
    failing = null;
    if (!isNoted) return;
    log.info(message);
    note(null);
  }

  /** If the clock was set back, the trouble would seem to have begun in the future, and wouldn't be forgotten in time. */
  function followClock(): void {
    const lastAt = clock.now();
    if (!failing || lastAt >= failing.lastAt) return;
    const step = lastAt - failing.lastAt;
    failing = { ...failing, since: plus(failing.since, step), lastAt, forgottenAt: failing.forgottenAt + step };
  }

  function report(): void {
    followClock();
    // Stop reporting if no call has been handed off for a while, because calling hours may hold the refused calls, or these may have ended.
    // Otherwise, the trouble would be reported until the provider accepts another call.
    if (failing && clock.now() > failing.forgottenAt)
      end("no call has been handed off since: the core doesn't know whether the provider accepts calls");
    if (!failing || !isTrouble()) return;
    const { since, reason, handoffs } = failing;
    log.warn({ since: new Date(since).toISOString(), reason, handoffs }, "the provider isn't accepting calls");
    note({ since, reason });
  }

  const timer = setInterval(report, troubleLimits.every.toMillis()).unref();

  return {
    onResult(result) {
      if (result.kind === 'taken') return end('the provider is accepting calls again');
      followClock();
      const now = clock.now();
      const isRetried = result.kind === 'not-taken';
      const retryAfter = isRetried ? (result.retryAfter ?? 0) * 1_000 : 0;
      failing = {
        since: failing?.since ?? now,
        handoffs: (failing?.handoffs ?? 0) + 1,
        lastAt: now,
        forgottenAt: now + retryAfter + (isRetried ? troubleLimits.noRetry : troubleLimits.forgotten).toMillis(),
        reason: result.reason,
      };
      // The first report is immediate. The timer repeats it every minute.
      if (!isNoted) report();
    },
    seconds: () => (failing && isTrouble() ? (failing.lastAt - failing.since) / 1_000 : 0),
    async close() {
      clearInterval(timer);
      if (isNoted) note(null);
      await noting;
    },
  };
}
