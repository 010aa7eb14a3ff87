/** Requests that wait for a batch, and those that are under way in one. */
export type BatchObserver = (size: number) => void;

type Waiting<Input, Output> = { input: Input; resolve: (output: Output) => void; reject: (error: unknown) => void };

/**
 * Shares round trips: what arrives in one turn of the event loop, or while other batches are under way, goes into one batch. No timer is
 * involved, so a lone request waits for nothing.
 *
 * @param options.run answers a batch, in its order, or fails it as a whole
 * @param options.size the most requests in one batch
 * @param options.lanes how many batches may be under way at once
 * @param options.isFaultOfOne whether an error may come from a single request: its batch is then run again one by one
 */
export function batched<Input, Output>(options: {
  run: (inputs: Input[]) => Promise<Output[]>;
  size: number;
  lanes: number;
  isFaultOfOne: (error: unknown) => boolean;
  observe: BatchObserver;
}): (input: Input) => Promise<Output> {
  const waiting: Waiting<Input, Output>[] = [];
  let underWay = 0;
  let isScheduled = false;

  /** Runs a batch. @returns what hands each request its answer */
  async function run(batch: Waiting<Input, Output>[]): Promise<() => void> {
    try {
      const outputs = await options.run(batch.map(({ input }) => input));
      return () => {
        batch.forEach(({ resolve, reject }, index) => {
          const output = outputs[index];
          if (output === undefined) reject(new Error('A batch left a request unanswered.'));
          else resolve(output);
        });
      };
    } catch (error) {
      if (batch.length > 1 && options.isFaultOfOne(error)) {
        for (const one of batch) (await run([one]))();
        return () => undefined;
      }
      return () => {
        for (const { reject } of batch) reject(error);
      };
    }
  }

  async function runNext(): Promise<void> {
    isScheduled = false;
    if (waiting.length === 0 || underWay >= options.lanes) return;
    underWay++;
    const batch = waiting.splice(0, options.size);
    // What did not fit goes into the next lane.
    if (waiting.length > 0) schedule();
    options.observe(batch.length);
    const answer = await run(batch);
    underWay--;
    // The next batch first: the database works on it while the answers to this one are written.
    schedule();
    setImmediate(answer);
  }

  /** In the end of this turn of the event loop: all requests that have come in one go share a batch. */
  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(runNext);
  }

  return (input) =>
    new Promise((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      if (underWay < options.lanes) schedule();
    });
}
