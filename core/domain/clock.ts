import { Duration } from 'luxon';
import { timestamp } from '#contract/text/text.ts';
import { auditEvent } from './audit/audit.ts';
import { clockSkew } from './deadlines.ts';
import type { Millis } from './instant.ts';
import type { Actor } from './model.ts';
import type { ClockStore, Ports } from './ports.ts';
import { Problem } from './problem.ts';

/**
 * If no core has run for longer than this, an administrator has to confirm the clock, because a database can't tell a longer pause from a
 * clock that's ahead. It's longer than a weekend or public holidays, so that no confirmation is needed after those.
 */
export const maxPause = Duration.fromObject({ days: 7 });
/** How often cores record the time, in ms. */
const recordEvery = 60_000;

/** @property aheadBy in ms, of the latest recorded time or of the database server's clock */
type ClockDoubt = { than: 'recorded' | 'server'; at: Millis; aheadBy: number };

/**
 * With a clock that's too far ahead, no calls are ended and no data is erased, because neither can be undone. A clock that's behind only
 * delays both.
 */
export function findDoubt({ newestAt, serverAt }: Awaited<ReturnType<ClockStore['read']>>, now: Millis): ClockDoubt | null {
  if (serverAt !== null && now > serverAt + clockSkew.toMillis()) return { than: 'server', at: serverAt, aheadBy: now - serverAt };
  if (newestAt !== null && now > newestAt + maxPause.toMillis()) return { than: 'recorded', at: newestAt, aheadBy: now - newestAt };
  return null;
}

export function describeDoubt({ than, at, aheadBy }: ClockDoubt, { adminCommand }: Pick<Ports, 'adminCommand'>): string {
  const what = `This machine's clock is ${formatDuration(aheadBy)} ahead of`;
  const held = 'No calls will be dialed or ended, and nothing will be erased, until you correct';
  if (than === 'server') return `${what} PostgreSQL's. ${held} the one that's wrong.`;
  return `${what} ${timestamp(at)}, the latest time that a core has recorded. ${held} the clock. If it's right, run: ${adminCommand} clock accept`;
}

function formatDuration(ms: number): string {
  const duration = Duration.fromMillis(ms);
  const unit = (['days', 'hours', 'minutes'] as const).find((candidate) => duration.as(candidate) >= 2) ?? 'seconds';
  return `${Math.floor(duration.as(unit))} ${unit}`;
}

export type ClockWatch = {
  /** Whether calls may be ended and data erased at this time. Queries the database if the last check was long ago. */
  isTrusted(now: Millis): Promise<boolean>;
  /** Checks the clock, and records the time if it's trusted. */
  look(now: Millis): Promise<boolean>;
  doubt(): ClockDoubt | null;
};

/** @param onChange called when the clock can no longer be trusted, and with null when it can be again */
export function watchClock(store: ClockStore, onChange: (doubt: ClockDoubt | null) => void): ClockWatch {
  let doubt: ClockDoubt | null = null;
  const never = { from: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY };
  /** The times at which the clock is trusted without another check. A clock that jumps out of this range is checked again. */
  let trusted = never;

  async function look(now: Millis): Promise<boolean> {
    const recorded = await store.read();
    const newDoubt = findDoubt(recorded, now);
    const isChanged = (newDoubt === null) !== (doubt === null);
    doubt = newDoubt;
    trusted = doubt ? never : { from: now, until: now + clockSkew.toMillis() };
    if (isChanged) onChange(doubt);
    if (doubt) return false;
    if (recorded.newestAt === null || now - recorded.newestAt >= recordEvery) await store.advance(now);
    return true;
  }

  return {
    look,
    isTrusted: async (now) => (now >= trusted.from && now <= trusted.until) || look(now),
    doubt: () => doubt,
  };
}

/** @throws Problem `conflict` */
export async function requireTrustedClock(ports: Ports): Promise<void> {
  const doubt = findDoubt(await ports.stores.clock.read(), ports.clock.now());
  if (doubt) throw new Problem('conflict', describeDoubt(doubt, ports));
}

/** Records that an administrator has confirmed the clock. @throws Problem `conflict` if PostgreSQL's clock contradicts it */
export async function acceptClock(ports: Ports, actor: Actor): Promise<Millis> {
  const { clock, activity } = ports.stores;
  const now = ports.clock.now();
  const doubt = findDoubt(await clock.read(), now);
  if (doubt?.than === 'server') throw new Problem('conflict', describeDoubt(doubt, ports));
  await clock.set(now);
  const subject = { kind: 'clock', id: ports.randomness.id(), name: timestamp(now) } as const;
  await activity.record(auditEvent(ports, actor, 'clock.accepted', subject, null));
  return now;
}
