import { isIP } from 'node:net';
import type { Logger } from 'pino';
import { isPrintable } from '#contract/text/text.ts';
import { auditEvent, sessionSubject, toOwningScope } from '../domain/audit/audit.ts';
import type { Digest, User } from '../domain/model.ts';
import type { Ports } from '../domain/ports.ts';
import { errorCode, Problem, ResultUnknown } from '../domain/problem.ts';
import type { RefusalReason } from '../domain/sign-in/identity-provider.ts';
import { refusedCodeEvent } from '../domain/sign-in/second-factor.ts';
import type { ObserveRefusals } from '../http/middleware/context.ts';

/** In ms. How often lines are written, so that a burst of refusals becomes one line per address, and an outage one line per route. */
const writeEvery = 10_000;
/** In ms. The minimum time between two warnings, because an untrusted proxy sends the header with every request. */
const warnEvery = 3_600_000;
/** The maximum number of addresses that a warning about untrusted proxies lists. */
const maxPeers = 5;
const ignoredForwarding =
  "X-Forwarded-For was ignored because it came from an address that isn't in TRUSTED_PROXIES. If that's your proxy, add it: until then, all clients share its address in throttles, activity and logs";
/** The maximum number of lines of one kind per interval, so that a flood from many addresses can't fill the log. */
const maxLines = 100;
/**
 * The maximum numbers of addresses of each kind, and of attempts, that are kept in memory until they're written, so that a flood can't
 * exhaust it.
 */
const maxKept = 10_000;
const maxAttempts = 1_000;
/** The maximum number of addresses that are recorded for one key per interval, and the interval in ms. */
const maxAddresses = 20;
const recordEvery = 3_600_000;

/** How many failures of one kind get their own lines per interval, because their responses refer to the log. All others share one line. */
const maxFaults = 20;

export type Refusals = ObserveRefusals & {
  /** Called when an active key wasn't accepted from the client's address. */
  onAddressRefused(digest: Digest, address: string): void;
  onCut(address: string): void;
  /** Writes the rest, and stops. */
  close(): Promise<void>;
};

/**
 * Counts refused keys and sign-ins in memory, and writes them in the background: log lines by client address, in a form that fail2ban can
 * read, and an audit event for each user and address. Log lines contain neither keys nor email addresses. If requests can't be served, logs
 * the first failure immediately, and counts the others.
 */
export function collectRefusals(ports: Ports, log: Logger, countAddressRefused: () => void): Refusals {
  const { users, activity } = ports.stores;
  const keys = countByAddress();
  const signIns = countByAddress();
  const throttled = countByAddress();
  const forwarding = countByAddress();
  let warnedAt = Number.NEGATIVE_INFINITY;
  const notServed = countNotServed(log);
  const cuts = countByAddress();
  let attempts = new Map<string, { email: string; address: string }>();
  const addresses = collectRefusedAddresses(ports);
  let codes = new Map<string, { user: User; address: string }>();

  async function recordCodes(): Promise<void> {
    const taken = [...codes.values()];
    codes = new Map();
    for (const { user, address } of taken) await activity.record(refusedCodeEvent(ports, user, address));
  }

  let identityProviderAttempts = new Map<string, { reason: RefusalReason; who: User | string; address: string }>();

  async function recordProviderAttempts(): Promise<void> {
    const taken = [...identityProviderAttempts.values()];
    identityProviderAttempts = new Map();
    for (const { reason, who, address } of taken) {
      const user = typeof who === 'string' ? null : who;
      // No user has this address, so only the service's staff see the event.
      const subject = user ? sessionSubject(user) : { kind: 'session' as const, id: 'unknown', name: String(who) };
      await activity.record(auditEvent(ports, { who: user, address }, `session.refused-${reason}`, subject, user && toOwningScope(user)));
    }
  }

  async function recordAttempts(): Promise<void> {
    const taken = [...attempts.values()];
    attempts = new Map();
    for (const { email, address } of taken) {
      // Record the event here and not during the password check, because the check must not take longer for an existing email address.
      const user = isPrintable(email) ? (await users.findByEmail(email))?.user : undefined;
      if (!user) continue;
      const event = auditEvent(ports, { who: user, address }, 'session.refused', sessionSubject(user), toOwningScope(user));
      await activity.record(event);
    }
  }

  /** Logs a warning at most once per hour, because an untrusted proxy sends the header with every request. */
  function warnOfForwarding(): void {
    const now = performance.now();
    if (now - warnedAt < warnEvery) return;
    const { byAddress, others } = forwarding.take();
    const requests = [...byAddress.values()].reduce((sum, count) => sum + count, others);
    if (requests === 0) return;
    warnedAt = now;
    log.warn({ from: [...byAddress.keys()].slice(0, maxPeers), requests }, ignoredForwarding);
  }

  async function writeAll(): Promise<void> {
    warnOfForwarding();
    writeLines(log, 'API keys refused', keys.take());
    writeLines(log, 'sign-ins refused', signIns.take());
    writeLines(log, 'sign-ins throttled', throttled.take());
    notServed.write();
    writeLines(log, 'connections cut off', cuts.take());
    await recordAttempts();
    await recordProviderAttempts();
    await addresses.record();
    await recordCodes();
  }

  let underWay: Promise<void> = Promise.resolve();
  const write = () => {
    underWay = underWay.then(writeAll).catch((err) => log.warn({ err }, "couldn't record refusals"));
    return underWay;
  };
  const timer = setInterval(write, writeEvery).unref();

  return {
    onNotServed: notServed.add,
    onKeyRefused: keys.add,
    onSignInRefused(email, address) {
      signIns.add(address);
      if (attempts.size < maxAttempts) attempts.set(`${address} ${email}`, { email, address });
    },
    onIdentityRefused(reason, who, address) {
      signIns.add(address);
      const name = typeof who === 'string' ? who : who.id;
      if (identityProviderAttempts.size < maxAttempts)
        identityProviderAttempts.set(`${reason} ${address} ${name}`, { reason, who, address });
    },
    onCodeRefused(user, address) {
      signIns.add(address);
      if (codes.size < maxAttempts) codes.set(`${address} ${user.id}`, { user, address });
    },
    onSignInThrottled: throttled.add,
    onForwardingIgnored: forwarding.add,
    onAddressRefused(digest, address) {
      countAddressRefused();
      addresses.add(digest, address);
    },
    onCut: cuts.add,
    async close() {
      clearInterval(timer);
      await write();
    },
  };
}

/**
 * Records in the audit log the addresses from which a key was refused. Each address is recorded once an hour for each key, up to a few
 * addresses, because a leaked key may be tried a million times, with IPv6 from a million addresses.
 */
function collectRefusedAddresses(ports: Ports) {
  let waiting = new Map<Digest, Set<string>>();
  /** The addresses that were recorded for each key in this hour. */
  const recorded = new Map<Digest, Set<string>>();
  let recordedSince = performance.now();

  return {
    add(digest: Digest, address: string): void {
      const done = recorded.get(digest);
      const addresses = waiting.get(digest) ?? new Set();
      const isKnown = done?.has(address) || (done?.size ?? 0) + addresses.size >= maxAddresses;
      if (isKnown || (addresses.size === 0 && waiting.size >= maxAttempts)) return;
      waiting.set(digest, addresses.add(address));
    },
    async record(): Promise<void> {
      if (performance.now() - recordedSince >= recordEvery || recorded.size > maxKept) {
        recorded.clear();
        recordedSince = performance.now();
      }
      const taken = waiting;
      waiting = new Map();
      // Mark these addresses as recorded before writing them, so that `add` skips them in the meantime.
      for (const [digest, addresses] of taken) recorded.set(digest, new Set([...(recorded.get(digest) ?? []), ...addresses]));
      for (const [digest, addresses] of taken) {
        const key = await ports.stores.apiKeys.findByDigest({ kind: 'all' }, digest);
        if (!key) continue;
        const subject = { kind: 'api-key', id: key.id, name: key.name } as const;
        for (const address of addresses)
          await ports.stores.activity.record(auditEvent(ports, { who: null, address }, 'api-key.refused', subject, key.eventScope));
      }
    },
  };
}

/**
 * Logs the first failures of a kind immediately, and later only the number of the others, because in an outage, thousands of requests fail
 * per second.
 */
export function countNotServed(log: Logger) {
  type Kind = { level: 'warn' | 'error'; message: string; route: string | undefined; code: string; left: number; more: number };
  let kinds = new Map<string, Kind>();
  return {
    add(error: unknown, fields: { route: string | undefined }): boolean {
      const isFault = !(error instanceof Problem || error instanceof ResultUnknown);
      const kind: Kind = {
        level: isFault ? 'error' : 'warn',
        message: isFault ? 'request failed' : error instanceof Problem ? 'request not served' : 'request not answered',
        route: fields.route,
        code: errorCode(isFault ? error : error.cause),
        left: isFault ? maxFaults : 1,
        more: 0,
      };
      const name = `${kind.message} ${kind.route} ${kind.code}`;
      const seen = kinds.get(name) ?? kind;
      kinds.set(name, seen);
      const isLogged = seen.left-- > 0;
      if (isLogged) log[seen.level]({ ...fields, err: error }, seen.message);
      else seen.more++;
      return isLogged;
    },
    write(): void {
      for (const { level, message, route, code, more } of kinds.values())
        if (more > 0) log[level]({ route, code, count: more }, `${message}: more requests`);
      kinds = new Map();
    },
  };
}

type Counted = { byAddress: ReadonlyMap<string, number>; others: number };

function countByAddress() {
  let byAddress = new Map<string, number>();
  /** The number of refusals from addresses for which there was no room. */
  let others = 0;
  return {
    add(address: string): void {
      const count = byAddress.get(address);
      if (count !== undefined || byAddress.size < maxKept) byAddress.set(address, (count ?? 0) + 1);
      else others++;
    },
    take(): Counted {
      const taken = { byAddress, others };
      byAddress = new Map();
      others = 0;
      return taken;
    },
  };
}

/** Writes one line for each of the addresses with the most refusals, and one for all others. */
function writeLines(log: Logger, message: string, { byAddress, others }: Counted): void {
  const counts = [...byAddress].toSorted(([, a], [, b]) => b - a);
  // Log only IP addresses, because a trusted proxy may forward any text as an address.
  for (const [address, count] of counts.slice(0, maxLines)) log.warn({ address: isIP(address) ? address : 'unknown', count }, message);
  const rest = counts.slice(maxLines);
  const count = rest.reduce((sum, [, some]) => sum + some, others);
  if (count > 0) log.warn({ addresses: rest.length, count }, `${message}, from other addresses`);
}
