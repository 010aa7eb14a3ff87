/** Ctrl-C and SIGTERM, taken in good order: nothing new begins, what is under way ends. */
export type Interrupt = {
  controller: AbortController;
  /** The signal that came, if one did. */
  signal(): NodeJS.Signals | undefined;
  /** Leaves signals to do as they always do. */
  release(): void;
};

const signals = ['SIGINT', 'SIGTERM'] as const;

export function interruptOnSignals(onStop: () => void): Interrupt {
  const controller = new AbortController();
  let came: NodeJS.Signals | undefined;
  const release = () => {
    for (const signal of signals) process.removeListener(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals) => {
    came = signal;
    // Whoever asks a second time does not want to wait: then the signal ends the process, as by default.
    release();
    onStop();
    controller.abort();
  };
  for (const signal of signals) process.on(signal, onSignal);
  return { controller, signal: () => came, release };
}
