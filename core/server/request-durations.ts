import { Histogram } from 'prom-client';

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
