/** Thrown after a signal has stopped the command and the requests in flight have finished. */
export class Interrupted extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals, message: string) {
    super(message);
    this.name = 'Interrupted';
    this.signal = signal;
  }
}

/** On Ctrl-C or SIGTERM, no new request starts and the requests in flight finish. */
export type Interrupt = {
  controller: AbortController;
  /** The signal received, if any. */
  signal(): NodeJS.Signals | undefined;
  /** Restores the default effect of signals. */
  release(): void;
};

const signals = ['SIGINT', 'SIGTERM'] as const;

export function interruptOnSignals(controller: AbortController, onInterrupt: () => void): Interrupt {
  let received: NodeJS.Signals | undefined;
  const release = () => {
    for (const signal of signals) process.removeListener(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals) => {
    received = signal;
    // A second Ctrl-C must end the process immediately, as it does by default.
    release();
    onInterrupt();
    controller.abort();
  };
  for (const signal of signals) process.on(signal, onSignal);
  return { controller, signal: () => received, release };
}
