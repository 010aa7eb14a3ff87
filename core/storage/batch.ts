/** Requests that wait for a batch, and those that are under way in one. */
export type BatchObserver = (size: number) => void;

type Waiting<Input, Output> = { input: Input; resolve: (output: Output) => void; reject: (error: unknown) => void };

/**
 * Shares round trips: what arrives while one batch is under way goes into the next. No timer is involved, so a lone request
 * waits for nothing.
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

  async function runBatch(batch: Waiting<Input, Output>[]): Promise<void> {
    try {
      const outputs = await options.run(batch.map(({ input }) => input));
      batch.forEach(({ resolve, reject }, index) => {
        const output = outputs[index];
        if (output === undefined) reject(new Error('A batch left a request unanswered.'));
        else resolve(output);
      });
    } catch (error) {
      if (batch.length > 1 && options.isFaultOfOne(error)) {
        for (const one of batch) await runBatch([one]);
      } else {
        for (const { reject } of batch) reject(error);
      }
    }
  }

  async function runLane(): Promise<void> {
    underWay++;
    while (waiting.length > 0) {
      const batch = waiting.splice(0, options.size);
      options.observe(batch.length);
      await runBatch(batch);
    }
    underWay--;
  }

  return (input) =>
    new Promise((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      if (underWay < options.lanes) void runLane();
    });
}
