import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { outcomeStates } from '#contract/calls/dialer.ts';
import { sessionRoutes } from '#contract/console/session.ts';
import type { DialerObserver } from '../dialer/loop.ts';
import type { StopReason } from '../domain/model.ts';
import { stopReasons } from '../domain/protection/judge.ts';
import { type CodeResult, type IdentityProviderResult, identityProviderResults } from '../http/middleware/context.ts';
import { notAnswered } from '../http/middleware/responses.ts';
import { adminCommand } from '../program.ts';
import type { ObserveBatch } from '../storage/calls/place-and-cancel.ts';
import { type CutReason, cutReasons } from './connections/connections.ts';

/** The connections of a database pool. */
type PoolUse = () => { used: number; free: number; waiting: number };

export type Metrics = {
  /** Observes a request. @param seconds from the request's arrival until its response was ready */
  onRequest(route: string, method: string, status: number, seconds: number): void;
  onBatch: ObserveBatch;
  onCut(reason: CutReason): void;
  onIdentityProviderResult(result: IdentityProviderResult): void;
  onCode(result: CodeResult): void;
  /** Counts a request with an active key from an address that the key doesn't allow. */
  onAddressRefused(): void;
  onStopped(reason: StopReason, calls: number): void;
  dialer: Omit<DialerObserver, 'onResult'>;
  watchPool(name: string, use: PoolUse): void;
  /** The gauges. Each takes a function that reads its values when Prometheus scrapes. */
  watch: ReturnType<typeof createGauges>;
  registry: Registry;
};

/**
 * Creates the metrics for Prometheus. Labels come from fixed lists: if a path, address or identifier were a label, the number of series
 * would grow without limit.
 */
export function createMetrics(version: string): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  new Gauge({ name: 'callkey_build_info', help: "Always 1, with the core's version as a label", labelNames: ['version'], registers }).set(
    { version },
    1,
  );

  const requests = new RequestDurations(registers);
  new Counter({
    name: 'callkey_api_key_authentications_total',
    help: "Requests to the key-authenticated endpoints, by whether the key was accepted, refused, or couldn't be checked",
    labelNames: ['result'],
    registers,
    // Computed when Prometheus scrapes, so that requests don't pay for it.
    async collect() {
      this.reset();
      for (const result of results) if (result !== 'throttled') this.inc({ result }, 0);
      for (const { metricName, labels, value } of (await requests.get()).values) {
        const isKeyed = metricName?.endsWith('_count') && String(labels.route).startsWith('/api/');
        if (isKeyed) this.inc({ result: toResult(Number(labels.status)) }, value);
      }
    },
  });
  const signIns = new Counter({
    name: 'callkey_sign_ins_total',
    help: 'Sign-ins by result',
    labelNames: ['result'],
    registers,
  });
  const codes = new Counter({
    name: 'callkey_second_factor_codes_total',
    help: 'Codes entered after a correct password, by result',
    labelNames: ['result'],
    registers,
  });
  for (const result of results) for (const counter of [signIns, codes]) counter.inc({ result }, 0);
  const identityProviderSignIns = new Counter({
    name: 'callkey_provider_sign_ins_total',
    help: 'Sign-ins with the OpenID Connect provider, by result',
    labelNames: ['result'],
    registers,
  });
  for (const result of identityProviderResults) identityProviderSignIns.inc({ result }, 0);
  const cuts = new Counter({
    name: 'callkey_connections_cut_total',
    help: 'Connections that the core cut off, by reason',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of cutReasons) cuts.inc({ reason }, 0);
  const refusedAddresses = new Counter({
    name: 'callkey_addresses_refused_total',
    help: "Requests with an active API key from an address that the key doesn't allow",
    registers,
  });
  const batches = new Histogram({
    name: 'callkey_batch_size',
    help: 'Requests per batched statement, by operation',
    labelNames: ['operation'],
    buckets: [1, 2, 4, 8, 16, 32, 64],
    registers,
  });
  for (const operation of batchOperations) batches.zero({ operation });
  const pools = new Map<string, PoolUse>();
  new Gauge({
    name: 'callkey_database_connections',
    help: 'Database connections in use, idle connections, and requests waiting for one, by pool',
    labelNames: ['pool', 'state'],
    registers,
    collect() {
      for (const [pool, use] of pools) {
        for (const [state, count] of Object.entries(use())) this.set({ pool, state }, count);
      }
    },
  });

  const counter = (name: string, help: string, labelNames: string[] = []) => new Counter({ name, help, labelNames, registers });
  const claims = counter('callkey_dialer_claims_total', 'Calls that this process has claimed for dialing');
  const handoffs = counter('callkey_dialer_handoffs_total', 'Attempts to hand a call to the provider, by result', ['result']);
  const leasesLost = counter('callkey_dialer_leases_lost_total', 'Claims that expired before the result of the hand-off was recorded');
  const outcomes = counter('callkey_outcomes_total', 'Outcomes that providers have reported, by state', ['state']);

  const stopped = counter(
    'callkey_calls_blocked_total',
    'Calls blocked, by reason: do-not-call list, kind or country of the number, or calling hours',
    ['reason'],
  );

  for (const reason of stopReasons) stopped.inc({ reason }, 0);
  for (const result of handoffResults) handoffs.inc({ result }, 0);
  for (const state of outcomeStates) outcomes.inc({ state }, 0);

  return {
    dialer: {
      onClaim: (calls) => claims.inc(calls),
      onHandoff: (result) => handoffs.inc({ result }),
      onLeaseLost: () => leasesLost.inc(),
      onOutcome: (state) => outcomes.inc({ state }),
    },
    onRequest(route, method, status, seconds) {
      requests.add({ route, method, status }, seconds);
      const isSignIn = route === sessionRoutes.signIn.path && method === 'POST';
      // If the sign-in needs a code (202), it isn't complete yet.
      if (isSignIn && (status === 201 || toResult(status) !== 'accepted')) signIns.inc({ result: toResult(status) });
    },
    onStopped: (reason, calls) => stopped.inc({ reason }, calls),
    onCut: (reason) => cuts.inc({ reason }),
    onIdentityProviderResult: (result) => identityProviderSignIns.inc({ result }),
    onCode(result) {
      for (const counter of [codes, signIns]) counter.inc({ result });
    },
    onAddressRefused: () => refusedAddresses.inc(),
    onBatch: (operation, size) => batches.observe({ operation }, size),
    watchPool: (name, use) => pools.set(name, use),
    watch: createGauges(registry),
    registry,
  };
}

/**
 * Creates gauges that are read when Prometheus scrapes. Gauges that don't need the database are read separately, so that they're available
 * even if the database isn't.
 */
function createGauges(registry: Registry) {
  return {
    queue: watchedGauges(registry, {
      due: { name: 'callkey_queue_due', help: 'Calls that are due but not dialed yet' },
      oldestSeconds: { name: 'callkey_queue_oldest_seconds', help: 'How long the oldest due call has been due' },
      held: { name: 'callkey_calls_held', help: 'Calls waiting for calling hours' },
    }),
    keys: watchedGauges(registry, {
      byDaysLeft: {
        name: 'callkey_api_keys',
        help: "API keys that aren't revoked, by days until they expire: expired, up to 7, up to 30, more, or never",
        label: 'days_left',
      },
    }),
    database: watchedGauges(registry, {
      migrations: { name: 'callkey_schema_version', help: 'How many migrations were applied to the database' },
      sessions: { name: 'callkey_sessions', help: 'Console sessions' },
      lastBackup: {
        name: 'callkey_last_backup_timestamp_seconds',
        help: `Unix time of the last backup made with "${adminCommand} backup"; 0 if none is recorded`,
      },
      bytes: {
        name: 'callkey_database_size_bytes',
        help: 'Size of the database and its write-ahead log; on PostgreSQL, all databases on the server share the log',
        label: 'part',
      },
      free: {
        name: 'callkey_disk_free_bytes',
        help: 'Free space on the disk of a SQLite database; not reported for PostgreSQL',
      },
    }),
    process: watchedGauges(registry, {
      ready: { name: 'callkey_ready', help: '1 if a write would be durable now, otherwise 0 (the same check as /readyz)' },
      clockAhead: {
        name: 'callkey_clock_ahead_seconds',
        help: "Seconds by which the clock is ahead, if it's so far ahead that calls aren't dialed or ended and data isn't erased; otherwise 0",
      },
      dialerTrouble: {
        name: 'callkey_dialer_trouble_seconds',
        help: "Time between the first and the latest call that the provider refused; 0 if it's less than a minute, or if no call has been handed off for a while",
      },
      lastUsedLag: {
        name: 'callkey_last_used_lag_seconds',
        help: "Age of the oldest use of a key that this process hasn't yet written to the database",
      },
    }),
  };
}

// Every result has a counter from the start, at 0, because otherwise Prometheus wouldn't notice its first increase.
const results = ['accepted', 'refused', 'throttled', 'undecided'] as const;
const handoffResults = ['taken', 'rejected', 'not-taken', 'answer-lost', 'doubt'];
const batchOperations: readonly Parameters<ObserveBatch>[0][] = ['look up', 'place', 'cancel', 'explain'];

/** Returns what a response's status means for the request's credentials. */
function toResult(status: number): (typeof results)[number] {
  if (status === 401) return 'refused';
  if (status === 429) return 'throttled';
  return status >= 500 || status === notAnswered ? 'undecided' : 'accepted';
}

/** One number, or a number for each value of the gauge's label. */
type Reading = number | Readonly<Record<string, number>>;
type Definition = { name: string; help: string; label?: string };

/**
 * Sets several gauges with one read when Prometheus scrapes, so that all values are from the same moment. If the read fails, the gauges
 * have no values, because old ones would be misleading.
 *
 * @returns a function that starts the read
 */
export function watchedGauges<Key extends string>(
  registry: Registry,
  definitions: Readonly<Record<Key, Definition>>,
): (look: () => Promise<Readonly<Record<Key, Reading>>>) => void {
  let look: (() => Promise<Readonly<Record<string, Reading>>>) | undefined;
  let looking: Promise<void> | undefined;

  async function show(): Promise<void> {
    const values = await look?.().catch(() => undefined);
    for (const [key, { gauge, label }] of gauges) {
      gauge.reset();
      const reading = values?.[key] ?? {};
      if (typeof reading === 'number') gauge.set(reading);
      else if (label === undefined) gauge.set(Number.NaN);
      else for (const [value, figure] of Object.entries(reading)) gauge.set({ [label]: value }, figure);
    }
  }

  const collect = () => {
    looking ??= show().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const gauges = Object.entries<Definition>(definitions).map(([key, { name, help, label }]) => {
    const gauge = new Gauge({ name, help, labelNames: label === undefined ? [] : [label], registers: [registry], collect });
    return [key, { gauge, label }] as const;
  });
  return (current) => {
    look = current;
  };
}

type Labels = { route: string; method: string; status: number };
type Series = { labels: Labels; counts: number[]; sum: number };

/** In seconds. Anything longer has a bucket of its own. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const about = { name: 'callkey_http_request_duration_seconds', help: 'Duration of requests, by route, method and status' };

/**
 * A histogram that only counts when it observes a request, and computes its values when Prometheus scrapes. prom-client's own histogram
 * looks up labels and bounds as text, and took three times as long for each request (measured: 1.2 µs instead of 0.4).
 */
export class RequestDurations extends Histogram<keyof Labels> {
  readonly #series = new Map<string, Series>();

  constructor(registers: ConstructorParameters<typeof Histogram>[0]['registers']) {
    super({ ...about, labelNames: ['route', 'method', 'status'], buckets: bounds, ...(registers && { registers }) });
  }

  add(labels: Labels, seconds: number): void {
    const name = `${labels.status} ${labels.method} ${labels.route}`;
    let series = this.#series.get(name);
    if (!series) {
      series = { labels, counts: [...bounds, 0].map(() => 0), sum: 0 };
      this.#series.set(name, series);
    }
    let bucket = 0;
    while (seconds > (bounds[bucket] ?? seconds)) bucket++;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += seconds;
  }

  /** prom-client calls this when Prometheus scrapes, and in `get`. Its types don't mention it. */
  async getForPromString() {
    return { ...about, type: 'histogram', aggregator: 'sum', values: Array.from(this.#series.values(), toValues).flat() };
  }
}

function toValues({ labels, counts, sum }: Series) {
  const toValue = (what: string, more: object, value: number) => ({
    metricName: `${about.name}_${what}`,
    labels: more,
    sharedLabels: labels,
    value,
  });
  let count = 0;
  const inBuckets = counts.map((inBucket, index) => {
    count += inBucket;
    return toValue('bucket', { le: bounds[index] ?? '+Inf' }, count);
  });
  return [...inBuckets, toValue('sum', {}, sum), toValue('count', {}, count)];
}
