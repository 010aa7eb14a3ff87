import { Duration } from 'luxon';
import { plus } from '../instant.ts';
import type { DialerTrouble } from '../model.ts';
import type { Ports } from '../ports.ts';

export const troubleLimits = {
  /** Shorter interruptions aren't reported: a provider may restart, and a number may be wrong. */
  after: Duration.fromObject({ minutes: 1 }),
  /** A core repeats the report this often while the trouble lasts. */
  every: Duration.fromObject({ minutes: 1 }),
  /**
   * The trouble counts as over this long after the last hand-off. If a call were waiting for the provider, it would be handed off again
   * much sooner.
   */
  forgotten: Duration.fromObject({ hours: 1 }),
  /** A report is valid for this long, because the core that wrote it may have died. */
  noted: Duration.fromObject({ minutes: 3 }),
};

/** The trouble of any core, to show to operators and users. */
export function findDialerTrouble({ clock, stores }: Ports): Promise<DialerTrouble | null> {
  return stores.dialing.findTrouble(plus(clock.now(), -troubleLimits.noted.toMillis()));
}
