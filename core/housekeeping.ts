import { Duration } from 'luxon';
import type { Logger } from 'pino';
import { operator } from './domain/audit.ts';
import { pruneAudit } from './domain/audit-chain.ts';
import type { ClockWatch } from './domain/clock.ts';
import type { RetentionDays } from './domain/model.ts';
import type { Ports } from './domain/ports.ts';
import { Problem } from './domain/problem.ts';
import { endOverdueCalls, eraseOldContacts, forgetOldCounts } from './domain/retention.ts';
import { sweepSessions } from './domain/sessions.ts';
import { createUser } from './domain/users.ts';

const everyMinute = Duration.fromObject({ minutes: 1 });
const everyHour = Duration.fromObject({ hours: 1 });
const firstUserEmail = 'admin@localhost';

type Housekeeping = {
  /** Ends after the step that is under way. */
  close(): Promise<void>;
};

/**
 * Runs the sweeps of each core, dialer or not. They run once at the start, so that a core that restarts every half an hour sweeps, too. What
 * ends or deletes something by the clock waits while the clock isn't trusted.
 */
export function startHousekeeping(ports: Ports, days: RetentionDays, clockWatch: ClockWatch, log: Logger): Housekeeping {
  const { apiKeys, auditChain, callList, dialing, retention, users } = ports.stores;
  const closing = new AbortController();
  const { signal } = closing;

  async function sweepEachMinute(): Promise<void> {
    const now = ports.clock.now();
    if (await clockWatch.look(now.toMillis())) {
      const lapsed = await dialing.lapse(now.toMillis(), signal);
      if (lapsed > 0) log.info({ calls: lapsed }, 'calls lapsed');
    }
    await callList.compactCounts();
    await auditChain.extend(signal);
  }

  /** Apart from the other work, which a million keys would hold up for minutes. */
  async function finishRevocations(): Promise<void> {
    const revoked = await users.finishDeletions(signal);
    if (revoked > 0) log.info({ keys: revoked }, 'API keys of deleted users revoked');
    const cancelled = await apiKeys.finishCancelling(ports.clock.now(), signal);
    if (cancelled > 0) log.info({ calls: cancelled }, 'calls of revoked keys cancelled');
  }

  async function sweepEachHour(): Promise<void> {
    const before = await retention.recordDays(days);
    if (before) log.warn({ before, now: days }, 'RETENTION_DAYS or AUDIT_RETENTION_DAYS has changed, or differs between cores');
    const now = ports.clock.now();
    try {
      // The same instant for all of it: the clock could step meanwhile.
      if (await clockWatch.isTrusted(now.toMillis()))
        await deleteOld({ ...ports, clock: { now: () => now, millis: () => now.toMillis() } });
    } finally {
      await sealAudit();
    }
    await apiKeys.compactCounts();
  }

  async function deleteOld(ports: Ports): Promise<void> {
    // Before all that erases nothing: a step that keeps failing must not keep contact data.
    const ended = await endOverdueCalls(dialing, ports.clock, signal);
    if (ended > 0) log.info({ calls: ended }, 'overdue calls ended');
    if (days.contacts !== null) {
      const erased = await eraseOldContacts(ports, operator, days.contacts, signal);
      if (erased > 0) log.info({ calls: erased }, 'contact data erased');
    }
    await sweepSessions(ports);
    await ports.throttle.sweep(ports.clock.millis());
    await forgetOldCounts(retention, ports.clock, signal);
    const pruned = days.auditEvents === null ? 0 : await pruneAudit(ports, operator, days.auditEvents, signal);
    if (pruned > 0) log.info({ events: pruned }, 'audit events deleted');
  }

  /** In the log, which others keep: who changes the database cannot change the seal there. `admin audit verify` compares them. */
  async function sealAudit(): Promise<void> {
    const { seq, hash } = await auditChain.state();
    if (seq > 0) log.info({ seal: `${seq}:${hash}` }, 'audit events sealed');
  }

  const repeating = [repeat(finishRevocations, everyMinute), repeat(sweepEachMinute, everyMinute), repeat(sweepEachHour, everyHour)];

  /** One run at a time: one that takes longer than the interval must not meet the next. */
  function repeat(work: () => Promise<void>, every: Duration) {
    const run = () =>
      work().catch((err) => {
        if (!signal.aborted) log.warn({ err }, 'sweeping failed');
      });
    let underWay = run();
    const timer = setInterval(() => {
      underWay = underWay.then(() => (signal.aborted ? undefined : run()));
    }, every.toMillis()).unref();
    return {
      async stop() {
        clearInterval(timer);
        await underWay;
      },
    };
  }

  return {
    async close() {
      closing.abort();
      await Promise.all(repeating.map(({ stop }) => stop()));
    },
  };
}

export type FirstUser = { email: string; password: string };

/** Creates a staff user with a one-time password on a database without users: somebody has to be able to sign in first. */
export async function createFirstUser(ports: Ports): Promise<FirstUser | null> {
  if ((await ports.stores.users.count()) > 0) return null;
  const input = { email: firstUserEmail, name: 'Administrator', userType: 'staff', accountId: null, partnerId: null } as const;
  try {
    const { password } = await createUser(ports, operator, input, null);
    return password === null ? null : { email: firstUserEmail, password };
  } catch (error) {
    // Another core that started at the same moment was first.
    if (error instanceof Problem && error.code === 'conflict') return null;
    throw error;
  }
}
