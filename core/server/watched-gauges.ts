import { Gauge, type Registry } from 'prom-client';

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
