import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { outcomeStates } from '#contract/calls/dialer.ts';
import { sessionRoutes } from '#contract/console/session.ts';
import type { DialerObserver } from '../dialer/loop.ts';
import { stopReasons } from '../domain/ports.ts';
import { type CodeResult, identityProviderResults } from '../http/middleware/context.ts';
import { notAnswered } from '../http/middleware/every-request.ts';
import { adminCommand } from '../program.ts';
import type { ObserveBatch } from '../storage/calls/place-and-cancel.ts';
import type { Storage } from '../storage/storage.ts';
import { cutReasons } from './connections/connections.ts';

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Creates the metrics for Prometheus. Labels come from fixed lists: if a path, address or identifier were a label, the number of series
 * would grow without limit. Every value of a label has a counter from the start, at 0, because otherwise Prometheus wouldn't notice its
 * first increase.
 */
export function createMetrics(version: string) {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const build = { name: 'callkey_build_info', help: "Always 1, with the core's version as a label", labelNames: ['version'] };
  new Gauge({ ...build, registers }).set({ version }, 1);

  /** Creates a counter, and returns a function that increases it. */
  function counter<Value extends string>(name: string, help: string, label: string, values: readonly Value[]) {
    const made = new Counter({ name, help, labelNames: [label], registers });
    for (const value of values) made.inc({ [label]: value }, 0);
    return (value: Value, by = 1) => made.inc({ [label]: value }, by);
  }
  const plainCounter = (name: string, help: string) => new Counter({ name, help, registers });

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
  const signIns = counter('callkey_sign_ins_total', 'Sign-ins by result', 'result', results);
  const codes = counter('callkey_second_factor_codes_total', 'Codes entered after a correct password, by result', 'result', results);
  const handoffs = counter('callkey_dialer_handoffs_total', 'Attempts to hand a call to the provider, by result', 'result', handoffResults);
  const outcomes = counter('callkey_outcomes_total', 'Outcomes that providers have reported, by state', 'state', outcomeStates);
  const claims = plainCounter('callkey_dialer_claims_total', 'Calls that this process has claimed for dialing');
  const leasesLost = plainCounter('callkey_dialer_leases_lost_total', 'Claims that expired before the result of the hand-off was recorded');
  const refusedAddresses = plainCounter(
    'callkey_addresses_refused_total',
    "Requests with an active API key from an address that the key doesn't allow",
  );
  const batches = new Histogram({
    name: 'callkey_batch_size',
    help: 'Requests per batched statement, by operation',
    labelNames: ['operation'],
    buckets: [1, 2, 4, 8, 16, 32, 64],
    registers,
  });
  for (const operation of batchOperations) batches.zero({ operation });

  return {
    registry,
    onRequest(route: string, method: string, status: number, seconds: number): void {
      requests.add({ route, method, status }, seconds);
      const isSignIn = route === sessionRoutes.signIn.path && method === 'POST';
      // If the sign-in needs a code (202), it isn't complete yet.
      if (isSignIn && (status === 201 || toResult(status) !== 'accepted')) signIns(toResult(status));
    },
    onBatch: ((operation, size) => batches.observe({ operation }, size)) satisfies ObserveBatch,
    onCode(result: CodeResult): void {
      codes(result);
      signIns(result);
    },
    onIdentityProviderResult: counter(
      'callkey_provider_sign_ins_total',
      'Sign-ins with the OpenID Connect provider, by result',
      'result',
      identityProviderResults,
    ),
    onAddressRefused: () => refusedAddresses.inc(),
    onCut: counter('callkey_connections_cut_total', 'Connections that the core cut off, by reason', 'reason', cutReasons),
    onStopped: counter(
      'callkey_calls_blocked_total',
      'Calls that were blocked or lapsed, by reason: do-not-call list, kind or country of the number, calling hours, contact limits, a stop or a pace',
      'reason',
      stopReasons,
    ),
    dialer: {
      onClaim: (calls) => claims.inc(calls),
      onHandoff: handoffs,
      onLeaseLost: () => leasesLost.inc(),
      onOutcome: outcomes,
    } satisfies Omit<DialerObserver, 'onResult'>,
    watch: (sources: Sources) => createGauges(registry, sources),
  };
}

/** These are read when Prometheus scrapes. */
type Sources = {
  pools: readonly { name: string; use: () => { used: number; free: number; waiting: number } }[];
  queue(): Promise<{ due: number; oldestSeconds: number; held: number; waiting: Readonly<Record<string, number>> }>;
  keys(): Promise<Readonly<Record<string, number>>>;
  database: Storage['stats'];
  process(): Promise<{ ready: number; clockAhead: number; dialerTrouble: number; lastUsedLag: number; certificateExpiresAt: number }>;
};

/** Gauges that don't need the database are read separately, so that they're available even if the database isn't. */
function createGauges(registry: Registry, { pools, queue, keys, database, process }: Sources): void {
  new Gauge({
    name: 'callkey_database_connections',
    help: 'Database connections in use, idle connections, and requests waiting for one, by pool',
    labelNames: ['pool', 'state'],
    registers: [registry],
    collect() {
      for (const { name, use } of pools) for (const [state, count] of Object.entries(use())) this.set({ pool: name, state }, count);
    },
  });
  watchedGauges(registry, queue, {
    due: { name: 'callkey_queue_due', help: 'Calls that are due but not dialed yet' },
    oldestSeconds: { name: 'callkey_queue_oldest_seconds', help: 'How long the oldest call that waits for a dialer has been due' },
    held: { name: 'callkey_calls_held', help: 'Calls waiting for calling hours' },
    waiting: {
      name: 'callkey_dialer_waiting',
      help: "Calls that haven't left the core, by why: dialer if they're due, or calling hours, a stop, a pace or contact limits",
      label: 'why',
    },
  });
  watchedGauges(registry, async () => ({ byDaysLeft: await keys() }), {
    byDaysLeft: {
      name: 'callkey_api_keys',
      help: "API keys that aren't revoked, by days until they expire: expired, up to 7, up to 30, more, or never",
      label: 'days_left',
    },
  });
  watchedGauges(registry, database, {
    migrations: { name: 'callkey_schema_version', help: 'How many migrations were applied to the database' },
    sessions: { name: 'callkey_sessions', help: 'Console sessions' },
    stops: {
      name: 'callkey_dialing_stops',
      help: 'Stops of dialing, by scope: the server, a partner, an account or a campaign',
      label: 'scope',
    },
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
  });
  watchedGauges(registry, process, {
    certificateExpiresAt: {
      name: 'callkey_certificate_expires_timestamp_seconds',
      help: 'Unix time at which the TLS certificate expires; not reported without TLS_CERT_FILE',
    },
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
  });
}

const results = ['accepted', 'refused', 'throttled', 'undecided'] as const;
const handoffResults = ['taken', 'rejected', 'not-taken', 'answer-lost', 'doubt'] as const;
const batchOperations: readonly Parameters<ObserveBatch>[0][] = ['look up', 'place', 'cancel', 'explain'];

/** Returns what a response's status means for the request's credentials. */
function toResult(status: number): (typeof results)[number] {
  if (status === 401) return 'refused';
  if (status === 429) return 'throttled';
  return status >= 500 || status === notAnswered ? 'undecided' : 'accepted';
}

/** One number, or a number for each value of the gauge's label. */
type Reading = number | Readonly<Record<string, number>>;

/** Sets gauges with one read per scrape, so that their values are from one moment. If it fails, they have none: old ones mislead. */
function watchedGauges<Key extends string>(
  registry: Registry,
  read: () => Promise<Readonly<Record<Key, Reading>>>,
  definitions: Readonly<Record<Key, { name: string; help: string; label?: string }>>,
): void {
  let reading: Promise<Readonly<Record<Key, Reading>> | undefined> | undefined;
  for (const key in definitions) {
    const { name, help, label } = definitions[key];
    const labelNames = label === undefined ? [] : [label];
    const collect = async () => {
      reading ??= read()
        .catch(() => undefined)
        .finally(() => {
          reading = undefined;
        });
      const value: Reading = (await reading)?.[key] ?? {};
      gauge.reset();
      if (typeof value === 'number') gauge.set(value);
      else if (label === undefined) gauge.set(Number.NaN);
      else for (const [of, figure] of Object.entries(value)) gauge.set({ [label]: of }, figure);
    };
    const gauge = new Gauge({ name, help, labelNames, registers: [registry], collect });
  }
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
class RequestDurations extends Histogram<keyof Labels> {
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
