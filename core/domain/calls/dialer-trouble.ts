import { Duration } from 'luxon';
import type { DialerTrouble } from '../model.ts';
import type { Ports } from '../ports.ts';

export const troubleLimits = {
  /** Shorter ones are no news: a provider may restart, and a number may be wrong. */
  after: Duration.fromObject({ minutes: 1 }),
  /** How often it's said again, by a core that still has it. */
  every: Duration.fromObject({ minutes: 1 }),
  /** How long after the last hand-off it's over. A call that waits for the provider is handed off again much sooner. */
  forgotten: Duration.fromObject({ hours: 1 }),
  /** How long a note holds: its core may have died. */
  noted: Duration.fromObject({ minutes: 3 }),
};

/** The trouble of any core, for its operators and users to see. */
export function findDialerTrouble({ clock, stores }: Ports): Promise<DialerTrouble | null> {
  return stores.dialing.findTrouble(clock.millis() - troubleLimits.noted.toMillis());
}
