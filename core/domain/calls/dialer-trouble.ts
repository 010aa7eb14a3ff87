import { Duration } from 'luxon';
import { plus } from '../instant.ts';
import type { DialerTrouble } from '../model.ts';
import type { Ports } from '../ports.ts';

export const troubleLimits = {
  /** Shorter interruptions aren't reported, because a provider may have restarted, or a phone number may be wrong. */
  after: Duration.fromObject({ minutes: 1 }),
  /** How often a core repeats the report while the trouble lasts. */
  every: Duration.fromObject({ minutes: 1 }),
  /** How long after the last hand-off the trouble is considered over. */
  forgotten: Duration.fromObject({ hours: 1 }),
  /**
   * The same after a hand-off that's retried, counted from the end of the provider's `Retry-After`. Must be longer than
   * `dialingLimits.maxRetryDelay`. A call that's still waiting for the provider would have been handed off again by then. So the refused
   * calls have ended, or wait for calling hours.
   */
  noRetry: Duration.fromObject({ minutes: 10 }),
  /** How long a report is valid. It expires because the core that wrote it may have died. */
  noted: Duration.fromObject({ minutes: 3 }),
};

/** Returns the longest-lasting problem with the provider that a core has reported recently. It's shown to operators and users. */
export function findDialerTrouble({ clock, stores }: Ports): Promise<DialerTrouble | null> {
  return stores.dialing.findTrouble(plus(clock.now(), -troubleLimits.noted.toMillis()));
}
