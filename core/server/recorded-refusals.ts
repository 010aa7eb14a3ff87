import { isIP } from 'node:net';
import type { Logger } from 'pino';
import { isPrintable } from '#contract/text/text.ts';
import { auditEvent, userEvent } from '../domain/audit/audit.ts';
import { readableEmail } from '../domain/directory/readable-email.ts';
import { oneHour } from '../domain/instant.ts';
import type { ApiKey, AuditEvent, Digest } from '../domain/model.ts';
import type { Ports } from '../domain/ports.ts';
import { errorCode, Problem, ResultUnknown } from '../domain/problem.ts';
import type { ObserveRefusals } from '../http/middleware/context.ts';

/** In ms. How often lines are written, so that a burst of refusals becomes one line per address, and an outage one line per route. */
const writeEvery = 10_000;
/** In ms. The minimum time between two warnings, because an untrusted proxy sends the header with every request. */
const warnEvery = oneHour;
/** The maximum number of addresses that a warning about untrusted proxies lists. */
const maxPeers = 5;
const ignoredForwarding =
  "X-Forwarded-For was ignored because it came from an address that isn't in TRUSTED_PROXIES. If that's your proxy, add it: until then, all clients share its address in throttles, activity and logs";
/** The maximum number of lines of one kind per interval, so that a flood from many addresses can't fill the log. */
const maxLines = 100;
/** The maximum numbers of addresses and of events of each kind that are kept until they're written, so that a flood can't fill the memory. */
const maxAddresses = 10_000;
const maxEvents = 1_000;
/** The maximum number of addresses that are recorded for one key per interval, and the interval in ms. */
const maxPerKey = 20;
const recordEvery = oneHour;
/** How many failures of one kind get their own lines per interval, because their responses refer to the log. All others share one line. */
const maxFaults = 20;

type RecordedRefusals = ObserveRefusals & {
  onAddressRefused(digest: Digest, address: string): void;
  onCut(address: string): void;
  /** Writes the rest, and stops. */
  close(): Promise<void>;
};

/** Collects one item for each name until they're taken, and counts how often each was added. */
class Collector<Item> {
  readonly #max: number;
  #byName = new Map<string, { item: Item; count: number }>();
  /** How often an item was added for which there was no room. */
  #others = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** @returns whether there was room */
  add(name: string, item: Item): boolean {
    const known = this.#byName.get(name);
    if (known) known.count++;
    else if (this.#byName.size < this.#max) this.#byName.set(name, { item, count: 1 });
    else this.#others++;
    return known !== undefined || this.#byName.has(name);
  }

  take(): { items: { item: Item; count: number }[]; others: number } {
    const taken = { items: [...this.#byName.values()], others: this.#others };
    this.#byName = new Map();
    this.#others = 0;
    return taken;
  }
}

/**
 * Counts refused keys and sign-ins in memory, and writes them in the background: log lines by client address, in a form that fail2ban can
 * read, and an audit event for each user and address. Log lines contain neither keys nor email addresses. If requests can't be served, logs
 * the first failure immediately, and counts the others. The 401 itself is in http/middleware/every-request.ts.
 */
export function recordRefusals(ports: Ports, log: Logger): RecordedRefusals {
  const { apiKeys, users, activity } = ports.stores;
  const counts = {
    'API keys refused': new Collector<string>(maxAddresses),
    'sign-ins refused': new Collector<string>(maxAddresses),
    'sign-ins throttled': new Collector<string>(maxAddresses),
    'connections cut off': new Collector<string>(maxAddresses),
  };
  const forwarding = new Collector<string>(maxAddresses);
  /** The events are made when they're written, because a check of a password must not take longer for an existing email address. */
  type MakeEvent = () => Promise<AuditEvent | null>;
  const events = {
    passwords: new Collector<MakeEvent>(maxEvents),
    identities: new Collector<MakeEvent>(maxEvents),
    codes: new Collector<MakeEvent>(maxEvents),
    addresses: new Collector<MakeEvent>(maxEvents),
  };
  const notServed = countNotServed(log);
  const oncePerHour = createHourlyMemory();
  let warnedAt = Number.NEGATIVE_INFINITY;

  const count = (kind: keyof typeof counts) => (address: string) => void counts[kind].add(address, address);
  const countSignIn = count('sign-ins refused');

  /** Logs a warning at most once per hour. */
  function warnOfForwarding(): void {
    const now = performance.now();
    if (now - warnedAt < warnEvery) return;
    const { items, others } = forwarding.take();
    if (items.length === 0) return;
    warnedAt = now;
    const requests = items.reduce((sum, { count }) => sum + count, others);
    log.warn({ from: items.slice(0, maxPeers).map(({ item }) => item), requests }, ignoredForwarding);
  }

  /** Events that were taken from `events` and haven't been recorded yet. */
  const waiting: MakeEvent[] = [];

  async function writeAll(): Promise<void> {
    warnOfForwarding();
    for (const [message, collector] of Object.entries(counts)) writeLines(log, message, collector.take());
    notServed.write();
    if (waiting.length < maxEvents) waiting.push(...Object.values(events).flatMap((all) => all.take().items.map(({ item }) => item)));
    for (let makeEvent = waiting.shift(); makeEvent; makeEvent = waiting.shift()) {
      try {
        const event = await makeEvent();
        if (event) await activity.record(event);
      } catch (error) {
        // Try it again after all others. In an outage, they would fail as well, so leave them for the next time.
        waiting.push(makeEvent);
        throw error;
      }
    }
  }

  let underWay: Promise<void> = Promise.resolve();
  const write = () => {
    underWay = underWay.then(writeAll).catch((err) => log.warn({ err }, "couldn't record refusals"));
    return underWay;
  };
  const timer = setInterval(write, writeEvery).unref();

  return {
    onNotServed: notServed.add,
    onKeyRefused: count('API keys refused'),
    onSignInRefused(email, address) {
      countSignIn(address);
      events.passwords.add(`${address} ${email}`, async () => {
        const user = isPrintable(email) ? (await users.findByEmail(email))?.user : undefined;
        return user ? userEvent(ports, { who: user, address }, 'session.refused', user, 'session') : null;
      });
    },
    onIdentityRefused(reason, who, address) {
      countSignIn(address);
      events.identities.add(`${reason} ${address} ${typeof who === 'string' ? who : who.id}`, async () => {
        const action = `session.refused-${reason}` as const;
        if (typeof who !== 'string') return userEvent(ports, { who, address }, action, who, 'session');
        // No user has this address, so only the service's staff see the event.
        return auditEvent(ports, { who: null, address }, action, { kind: 'session', id: 'unknown', name: readableEmail(who) }, null);
      });
    },
    onCodeRefused(user, address) {
      countSignIn(address);
      events.codes.add(`${address} ${user.id}`, async () => userEvent(ports, { who: user, address }, 'second-factor.refused', user));
    },
    onSignInThrottled: count('sign-ins throttled'),
    onForwardingIgnored: (peer) => void forwarding.add(peer, peer),
    onAddressRefused(digest, address) {
      const find = () => apiKeys.findByDigest({ kind: 'all' }, digest);
      let lookup: Promise<ApiKey | null> | undefined;
      const makeEvent = async () => {
        const key = await lookup?.catch(find);
        if (!key) return null;
        const subject = { kind: 'api-key', id: key.id, name: key.name } as const;
        return auditEvent(ports, { who: null, address }, 'api-key.refused', subject, key.eventScope);
      };
      oncePerHour(digest, address, () => {
        const isAdded = events.addresses.add(`${digest} ${address}`, makeEvent);
        if (isAdded) {
          // Look now, because the key's owner may revoke it before the event is written, and a revoked key's digest is gone.
          lookup = find();
          // `makeEvent` tries again.
          lookup.catch(() => undefined);
        }
        return isAdded;
      });
    },
    onCut: count('connections cut off'),
    async close() {
      clearInterval(timer);
      // Until nothing is left, or nothing more can be written.
      let left: number;
      do {
        left = waiting.length;
        await write();
      } while (waiting.length > 0 && waiting.length !== left);
    },
  };
}

/**
 * Returns a function that records each address once per hour for each key, up to a few addresses, because a leaked key may be tried a
 * million times, with IPv6 from a million addresses. `record` returns false if there was no room, so that the address can be tried again.
 */
function createHourlyMemory(): (digest: Digest, address: string, record: () => boolean) => void {
  const known = new Map<Digest, Set<string>>();
  let since = performance.now();
  return (digest, address, record) => {
    if (performance.now() - since >= recordEvery || known.size > maxAddresses) {
      known.clear();
      since = performance.now();
    }
    const addresses = known.get(digest) ?? new Set();
    if (!addresses.has(address) && addresses.size < maxPerKey && record()) known.set(digest, addresses.add(address));
  };
}

/** Logs a kind's first failures, and only counts the others, because in an outage, thousands of requests fail per second. */
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

/** Writes one line for each of the addresses with the most refusals, and one for all others. */
function writeLines(log: Logger, message: string, { items, others }: ReturnType<Collector<string>['take']>): void {
  const counts = items.toSorted((a, b) => b.count - a.count);
  // Log only IP addresses, because a trusted proxy may forward any text as an address.
  for (const { item, count } of counts.slice(0, maxLines)) log.warn({ address: isIP(item) ? item : 'unknown', count }, message);
  const rest = counts.slice(maxLines);
  const count = rest.reduce((sum, each) => sum + each.count, others);
  if (count > 0) log.warn({ addresses: rest.length, count }, `${message}, from other addresses`);
}
