import { useEffect } from 'preact/hooks';
import type { Failure } from '../../ipc.ts';
import { Dialog } from '../components/dialog.tsx';
import { Mark } from '../components/mark.tsx';
import { useAction } from '../components/use-action.ts';
import { connectionError, loadStartupState, refreshKey, resetSession, server } from '../state/session.ts';

const retryMs = 5_000;

type Core = Extract<Failure, { kind: 'incompatible' }>['core'];

const explanations: Readonly<Record<Core, { title: string; text: string }>> = {
  older: {
    title: 'This core is too old for this console',
    text: 'Update the core, or use the console of its release.',
  },
  newer: {
    title: 'This core is too new for this console',
    text: 'Update this console to the release of your core.',
  },
  unknown: {
    title: 'This is not a Callkey core',
    text: 'Another kind of server answers at this address. Check the address.',
  },
};

/** Before signing in: another release of the core answers, or another kind of server. */
export function Incompatible({ core }: { core: Core }) {
  const { title, text } = explanations[core];
  return <ErrorCard title={title} text={text} />;
}

/** The same during a session, as a dialog: the screen under it keeps its state. */
export function BecameIncompatible({ core }: { core: Core }) {
  const { title, text } = explanations[core];
  return (
    <Dialog title={title} lead={text} isAlert onDismiss={() => undefined}>
      <p class="hint">{server.value}</p>
      <div class="actions">
        <button type="button" onClick={resetSession}>
          Use another server
        </button>
        <button
          type="button"
          class="primary"
          autofocus
          onClick={() => {
            connectionError.value = null;
            refreshKey.value += 1;
          }}
        >
          Try again
        </button>
      </div>
    </Dialog>
  );
}

/** The core of the stored session does not answer. The console retries until it does. */
export function Unreachable({ detail }: { detail: string }) {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const retry = () => {
      timer = setTimeout(() => void loadStartupState().then(retry), retryMs);
    };
    retry();
    return () => clearTimeout(timer);
  }, []);
  return <ErrorCard title="Cannot reach the core" text={`${detail} The console tries again every few seconds.`} />;
}

/** Shows until the core has answered for the stored session. */
export function Splash() {
  return (
    <main class="entrance" aria-busy="true">
      <section class="card splash">
        <Mark />
        <p role="status" class="loading">
          Opening your session …
        </p>
      </section>
    </main>
  );
}

function ErrorCard({ title, text }: { title: string; text: string }) {
  const { isBusy, run } = useAction();
  const retry = () =>
    run(async () => {
      await loadStartupState();
      return { ok: true, value: null };
    });
  return (
    <main class="entrance">
      <section class="card" aria-labelledby="connection-error-title">
        <Mark />
        <h1 id="connection-error-title">{title}</h1>
        <p>{text}</p>
        <p class="hint">{server.value}</p>
        <div class="actions">
          <button type="button" onClick={resetSession}>
            Use another server
          </button>
          <button type="button" class="primary" onClick={() => void retry()} aria-disabled={isBusy}>
            Try again
          </button>
        </div>
      </section>
    </main>
  );
}
