/** Thrown after a signal has stopped the command and the requests in flight have finished. */
export class Interrupted extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals, message: string) {
    super(message);
    this.name = 'Interrupted';
    this.signal = signal;
  }
}

const signals = ['SIGINT', 'SIGTERM'] as const;

/** On Ctrl-C or SIGTERM, no new request starts and the requests in flight finish. `release` restores the default effect of signals. */
export function interruptOnSignals(controller: AbortController, onInterrupt: () => void) {
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
  return { signal: () => received, release };
}
