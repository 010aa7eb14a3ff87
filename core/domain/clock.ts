import { DateTime, Duration } from 'luxon';
import { timestamp } from '#contract/text/text.ts';
import { auditEvent } from './audit/audit.ts';
import { clockSkew } from './deadlines.ts';
import type { Actor } from './model.ts';
import type { Clock, ClockStore, Ports } from './ports.ts';
import { Problem } from './problem.ts';

/**
 * How long no core may have run before an administrator has to confirm the clock: longer than weekends and holidays, so that nobody is asked
 * after those. A database cannot tell a longer pause from a clock that is ahead.
 */
export const longestPause = Duration.fromObject({ days: 7 });
/** In ms: how often cores record the time. */
const recordEvery = 60_000;

/** What the clock is ahead of, and by how many ms. */
export type ClockDoubt = { than: 'recorded' | 'server'; at: number; aheadBy: number };

/**
 * Whether a clock is too far ahead to end calls or erase data by it: neither can be undone. A clock that is behind does neither too early.
 *
 * @param now in epoch milliseconds
 */
export function doubtOf({ newestAt, serverAt }: Awaited<ReturnType<ClockStore['read']>>, now: number): ClockDoubt | null {
  if (serverAt !== null && now > serverAt + clockSkew.toMillis()) return { than: 'server', at: serverAt, aheadBy: now - serverAt };
  if (newestAt !== null && now > newestAt + longestPause.toMillis()) return { than: 'recorded', at: newestAt, aheadBy: now - newestAt };
  return null;
}

/** Says what is wrong, and what to do. @param acceptCommand how a person confirms the clock */
export function describeDoubt({ than, at, aheadBy }: ClockDoubt, acceptCommand: string): string {
  const what = `This machine's clock is ${inWords(aheadBy)} ahead of`;
  const held = 'No calls will be dialed or ended, and nothing will be erased, until you set';
  if (than === 'server') return `${what} PostgreSQL's. ${held} the one that's wrong.`;
  const recorded = DateTime.fromMillis(at, { zone: 'utc' }).toISO();
  return `${what} ${recorded}, the latest time that a core has recorded. ${held} it. If it's right, run: ${acceptCommand}`;
}

function inWords(ms: number): string {
  const duration = Duration.fromMillis(ms);
  const unit = (['days', 'hours', 'minutes'] as const).find((one) => duration.as(one) >= 2) ?? 'seconds';
  return `${Math.floor(duration.as(unit))} ${unit}`;
}

export type ClockWatch = {
  /** Whether calls may be ended and data erased by this instant, in epoch milliseconds. Asks the database if the last look was long ago. */
  isTrusted(now: number): Promise<boolean>;
  /** Looks, and records the time if it is trusted. */
  look(now: number): Promise<boolean>;
  /** What the last look found. */
  doubt(): ClockDoubt | null;
};

/** @param onChange called when a doubt begins, and with null when it ends */
export function watchClock(store: ClockStore, onChange: (doubt: ClockDoubt | null) => void): ClockWatch {
  let doubt: ClockDoubt | null = null;
  /** A clock that has stepped further since the last look is looked at again. */
  let trusted = { from: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY };

  async function look(now: number): Promise<boolean> {
    const known = await store.read();
    const found = doubtOf(known, now);
    const isChanged = (found === null) !== (doubt === null);
    doubt = found;
    trusted = found
      ? { from: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY }
      : { from: now, until: now + clockSkew.toMillis() };
    if (isChanged) onChange(found);
    if (found) return false;
    if (known.newestAt === null || now - known.newestAt >= recordEvery) await store.advance(now);
    return true;
  }

  return {
    look,
    isTrusted: async (now) => (now >= trusted.from && now <= trusted.until) || look(now),
    doubt: () => doubt,
  };
}

/** @throws Problem `conflict` if nothing may be ended or erased by this clock */
export async function requireTrustedClock(store: ClockStore, clock: Clock, acceptCommand: string): Promise<void> {
  const doubt = doubtOf(await store.read(), clock.millis());
  if (doubt) throw new Problem('conflict', describeDoubt(doubt, acceptCommand));
}

/**
 * An administrator says that the clock is right, however far it is ahead.
 *
 * @returns the time by it
 * @throws Problem `conflict` if PostgreSQL's clock contradicts it
 */
export async function acceptClock(ports: Ports, actor: Actor, acceptCommand: string): Promise<DateTime> {
  const { clock, activity } = ports.stores;
  const now = ports.clock.now();
  const doubt = doubtOf(await clock.read(), now.toMillis());
  if (doubt?.than === 'server') throw new Problem('conflict', describeDoubt(doubt, acceptCommand));
  await clock.set(now.toMillis());
  const subject = { kind: 'clock', id: ports.randomness.id(), name: timestamp(now) } as const;
  await activity.record(auditEvent(ports, actor, 'clock.accepted', subject, null));
  return now;
}
