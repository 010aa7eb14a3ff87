import { useEffect } from 'preact/hooks';
import type { Failure } from '../../ipc.ts';
import { Dialog } from '../components/dialog.tsx';
import { Mark } from '../components/mark.tsx';
import { useAction } from '../components/use-action.ts';
import { begin, leave, obstacle, server, sessionTurn } from '../state/session.ts';

const retryMs = 5_000;

type Core = Extract<Failure, { kind: 'incompatible' }>['core'];

const words: Readonly<Record<Core, { title: string; text: string }>> = {
  older: {
    title: 'This core is too old for this console',
    text: 'Update the core, or sign in with the console that came with it.',
  },
  newer: {
    title: 'This core is too new for this console',
    text: 'Update this console to the release of your core.',
  },
  unknown: {
    title: 'This is no Callkey core',
    text: 'Something answers at that address, but not as a Callkey core does. Is the address right?',
  },
};

/** Something answers that this console cannot work with. */
export function Incompatible({ core }: { core: Core }) {
  const { title, text } = words[core];
  return <Obstacle title={title} text={text} />;
}

/** The same in the middle of things: over whatever is on the screen, which stays as it is. */
export function BecameIncompatible({ core }: { core: Core }) {
  const { title, text } = words[core];
  return (
    <Dialog title={title} lead={text} isAlert onDismiss={() => undefined}>
      <p class="hint">{server.value}</p>
      <div class="actions">
        <button type="button" onClick={leave}>
          Use another server
        </button>
        <button
          type="button"
          class="primary"
          autofocus
          onClick={() => {
            obstacle.value = null;
            sessionTurn.value += 1;
          }}
        >
          Try again
        </button>
      </div>
    </Dialog>
  );
}

/** A kept session's core is out of reach: it is asked again by itself. */
export function Unreachable({ detail }: { detail: string }) {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const again = () => {
      timer = setTimeout(() => void begin().then(again), retryMs);
    };
    again();
    return () => clearTimeout(timer);
  }, []);
  return <Obstacle title="The core is out of reach" text={`${detail} It is tried again every few seconds.`} />;
}

/** A kept session is looked up in its core, which takes its time. */
export function Opening() {
  return (
    <main class="entrance" aria-busy="true">
      <section class="card opening">
        <Mark />
        <p role="status" class="loading">
          Opening your session …
        </p>
      </section>
    </main>
  );
}

function Obstacle({ title, text }: { title: string; text: string }) {
  const { isBusy, run } = useAction();
  const again = () =>
    run(async () => {
      await begin();
      return { ok: true, value: null };
    });
  return (
    <main class="entrance">
      <section class="card" aria-labelledby="obstacle-title">
        <Mark />
        <h1 id="obstacle-title">{title}</h1>
        <p>{text}</p>
        <p class="hint">{server.value}</p>
        <div class="actions">
          <button type="button" onClick={leave}>
            Use another server
          </button>
          <button type="button" class="primary" onClick={() => void again()} aria-disabled={isBusy}>
            Try again
          </button>
        </div>
      </section>
    </main>
  );
}
