import type { Logger } from 'pino';
import { operator } from '../domain/audit/audit.ts';
import { pruneAudit } from '../domain/audit/audit-chain.ts';
import { eraseOldContacts, forgetOldCounts } from '../domain/calls/contacts.ts';
import { endOverdueCalls } from '../domain/calls/dialing.ts';
import type { ClockWatch } from '../domain/clock.ts';
import { createUser, finishUserChanges } from '../domain/directory/users.ts';
import { eachDespiteErrors } from '../domain/each-despite-errors.ts';
import { oneHour, oneMinute } from '../domain/instant.ts';
import type { Ports, RetentionDays } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { resealSecrets } from '../domain/sign-in/second-factor.ts';
import { sweepSessions } from '../domain/sign-in/sessions.ts';
import { missingSecret } from './sealed-secrets.ts';

const firstUserEmail = 'admin@localhost';

/**
 * Runs the recurring cleanup (the sweeps) in each core, with or without a dialer. Each sweep also runs once at startup, so that even a core
 * that restarts every half hour does the hourly work. Anything that ends or deletes something because of its age waits until the clock is
 * trusted.
 */
export function startHousekeeping(ports: Ports, days: RetentionDays, clockWatch: ClockWatch, log: Logger) {
  const { apiKeys, auditChain, callList, dialing, directory, doNotCall, retention, rules } = ports.stores;
  const closing = new AbortController();
  const { signal } = closing;

  /** Logs how many were changed, if any. */
  async function report(counting: Promise<number>, what: string, message: string): Promise<number> {
    const count = await counting;
    if (count > 0) log.info({ [what]: count }, message);
    return count;
  }

  // These three repeat on their own each minute, because a million keys or a long queue would hold up other steps for minutes.

  async function blockDoNotCall(): Promise<void> {
    const blocked = doNotCall.blockDoNotCall(ports.clock.now(), signal);
    ports.onStopped('do-not-call', await report(blocked, 'calls', 'queued calls blocked by do-not-call lists'));
  }

  async function makeHeldDue(): Promise<void> {
    const due = rules.makeHeldDue(ports.clock.now(), signal);
    await report(due, 'calls', 'held calls are due because rules have changed or dialing was resumed');
  }

  async function cancelCallsLeft(): Promise<void> {
    try {
      await report(finishUserChanges(ports, signal), 'keys', 'API keys of deleted and moved users updated');
    } finally {
      await report(apiKeys.cancelCallsOfMarked(ports.clock.now(), signal), 'calls', 'calls of revoked keys cancelled');
      await report(ports.stores.stops.cancelCallsOfStopped(signal), 'calls', 'calls of stopped scopes cancelled');
    }
  }

  async function lapse(): Promise<void> {
    const now = ports.clock.now();
    if (await clockWatch.look(now)) await report(dialing.lapse(now, signal), 'calls', 'calls lapsed');
  }

  async function restoreCampaigns(): Promise<void> {
    await report(directory.restoreCampaigns(), 'campaigns', "campaigns are shown again because their deletion didn't finish");
  }

  async function sweepEachHour(): Promise<void> {
    const before = await retention.recordDays(days);
    if (before) log.warn({ before, now: days }, 'RETENTION_DAYS or AUDIT_RETENTION_DAYS has changed, or differs between cores');
    await runEach([...deletions.map((step) => () => withTrustedClock(step)), sealAudit]);
  }

  const deletions: readonly ((ports: Ports) => Promise<unknown>)[] = [
    ({ clock }) => report(endOverdueCalls(dialing, clock, signal), 'calls', 'overdue calls ended'),
    async (now) => days.contacts && report(eraseOldContacts(now, operator.actor, days.contacts, signal), 'calls', 'contact data erased'),
    sweepSessions,
    ({ stores, clock }) => stores.links.sweepCodes(clock.now()),
    ({ throttle, clock }) => throttle.sweep(clock.now()),
    ({ clock }) => forgetOldCounts(retention, clock, signal),
    ({ clock }) => report(doNotCall.deleteEnded(clock.now(), signal), 'entries', 'do-not-call entries past their end date deleted'),
    async (now) => days.auditEvents && report(pruneAudit(now, operator.actor, days.auditEvents, signal), 'events', 'audit events deleted'),
    async (now) => {
      const { resealed, unreadable } = await resealSecrets(now);
      if (resealed > 0) log.info({ users: resealed }, 'second factors encrypted with the newest session secret');
      if (unreadable > 0) log.error({ users: unreadable }, missingSecret);
    },
  ];

  /**
   * Runs a step with a trusted time. Each step reads the clock again, because an earlier step may have taken hours. With an older time,
   * sessions that began in the meantime would seem to be from the future. Within a step, the time doesn't change, because a new time might
   * not be trusted.
   */
  async function withTrustedClock(step: (ports: Ports) => Promise<unknown>): Promise<void> {
    const now = ports.clock.now();
    if (await clockWatch.isTrusted(now)) await step({ ...ports, clock: { now: () => now } });
  }

  /** Logs the audit chain's seal, which someone who changes the database can't change there. `admin audit verify` compares the two. */
  async function sealAudit(): Promise<void> {
    const { seq, hash } = await auditChain.state();
    if (seq > 0) log.info({ seal: `${seq}:${hash}` }, 'audit events sealed');
  }

  /** Runs all steps, even if one of them fails. For example, a step that needs every node of a cluster fails while a node is down. */
  function runEach(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
    return eachDespiteErrors(steps, signal, (step) => step());
  }

  const blocking = repeat(blockDoNotCall, oneMinute);
  const holding = repeat(makeHeldDue, oneMinute);
  const revoking = repeat(cancelCallsLeft, oneMinute);
  const lapsing = repeat(() => runEach([lapse, restoreCampaigns, callList.compactCounts, () => auditChain.extend(signal)]), oneMinute);
  // The hourly sweep waits until no calls are being lapsed. Otherwise, on PostgreSQL, it would skip a call that's being lapsed at that
  // moment, and erase the call's data an hour later.
  const erasing = repeat(() => lapsing.underWay().then(sweepEachHour), oneHour);

  /** Repeats work at an interval, in ms. Runs don't overlap, even if one takes longer than the interval. */
  function repeat(work: () => Promise<void>, every: number) {
    const run = () =>
      work().catch((err) => {
        if (!signal.aborted) log.warn({ err }, 'housekeeping failed');
      });
    let underWay = run();
    let isRequested = false;
    const timer = setInterval(() => {
      underWay = underWay.then(() => (signal.aborted ? undefined : run()));
    }, every).unref();
    return {
      /** Runs the work now or, if it's running, once more afterwards, however often this is called until then. */
      now() {
        if (isRequested) return;
        isRequested = true;
        underWay = underWay.then(() => {
          isRequested = false;
          return signal.aborted ? undefined : run();
        });
      },
      underWay: () => underWay,
      async stop() {
        clearInterval(timer);
        await underWay;
      },
    };
  }

  return {
    /** Blocks queued calls to newly listed numbers now, instead of within a minute. */
    blockDoNotCall: blocking.now,
    /** Applies changed rules to held calls now, instead of within a minute. */
    makeHeldDue: holding.now,
    /** Cancels the queued calls of revoked keys and of stops now, instead of within a minute. */
    cancelCallsLeft: revoking.now,
    /** Stops after the step that's running. */
    async close() {
      closing.abort();
      await Promise.all([blocking, holding, revoking, lapsing, erasing].map(({ stop }) => stop()));
    },
  };
}

export type FirstUser = { email: string; password: string };

/** Creates a staff user with a one-time password if the database has no users, so that someone can sign in. */
export async function createFirstUser(ports: Ports): Promise<FirstUser | null> {
  // If passwords are off, no one could sign in as that user, so the operator has to create the first user.
  if (!ports.passwordSignIn || (await ports.stores.users.count()) > 0) return null;
  const input = { email: firstUserEmail, name: 'Administrator', userType: 'staff', accountId: null, partnerId: null } as const;
  try {
    const { password } = await createUser(ports, operator, input, null);
    return password === null ? null : { email: firstUserEmail, password };
  } catch (error) {
    // Another core started at the same time and created the user first.
    if (error instanceof Problem && error.code === 'conflict') return null;
    throw error;
  }
}
