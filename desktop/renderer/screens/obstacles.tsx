import { useEffect, useState } from 'preact/hooks';
import type { Failure } from '../../ipc.ts';
import { Mark } from '../components/mark.tsx';
import { begin, leave, obstacle, server, session } from '../state/session.ts';

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

/** A kept session's core is out of reach: it is asked again by itself. */
export function Unreachable({ detail }: { detail: string }) {
  useEffect(() => {
    const timer = setInterval(() => void begin(), retryMs);
    return () => clearInterval(timer);
  }, []);
  return <Obstacle title="The core is out of reach" text={`${detail} It is tried again every few seconds.`} />;
}

function Obstacle({ title, text }: { title: string; text: string }) {
  const [isBusy, setBusy] = useState(false);
  async function again(): Promise<void> {
    setBusy(true);
    // Whoever is signed in goes on where they were; otherwise it starts from the beginning.
    if (session.peek()) obstacle.value = null;
    else await begin();
    setBusy(false);
  }
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
