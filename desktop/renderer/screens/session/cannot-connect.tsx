import { useEffect } from 'preact/hooks';
import type { Failure } from '../../../ipc.ts';
import { Dialog } from '../../components/dialog.tsx';
import { useAction } from '../../components/form.tsx';
import { Mark } from '../../components/icons.tsx';
import { useIgnoredCommands } from '../../state/commands.ts';
import { leave, loadStartupState, server, tryAgain } from '../../state/session.ts';

const retryMs = 5_000;

type Core = Extract<Failure, { kind: 'incompatible' }>['core'];

type Explanation = { title: string; text: string };

const explanations: Readonly<Record<Core, Explanation>> = {
  older: {
    title: 'This server is too old for this console',
    text: 'Update the server, or use the version of the console that matches it.',
  },
  newer: {
    title: 'This server is too new for this console',
    text: 'Update the console to the same version as your server.',
  },
};

/** Shown if the core that served the page has been replaced by another release. */
const pageIsOutdated: Explanation = {
  title: 'This page doesn’t match the server’s version',
  text: 'The server was updated or replaced. Reload the page to continue. You’ll lose anything you’ve typed here.',
};

async function reload(): Promise<void> {
  location.reload();
}

const choosesServer = () => window.callkey.capabilities.choosesServer;

function explain(core: Core): Explanation {
  return choosesServer() ? explanations[core] : pageIsOutdated;
}

/** Shown before signing in if the server is another release of the core. */
export function Incompatible({ core }: { core: Core }) {
  const { title, text } = explain(core);
  return <ErrorCard title={title} text={text} retry={choosesServer() ? loadStartupState : reload} />;
}

/** Shown for the same reason during a session. It's a dialog, so that the screen under it keeps its state. */
export function BecameIncompatible({ core }: { core: Core }) {
  const { title, text } = explain(core);
  const canReload = !choosesServer();
  return (
    <Dialog title={title} lead={text} isAlert onDismiss={() => undefined}>
      <p class="hint">{server.value}</p>
      <div class="actions">
        <UseAnotherServer />
        <button type="button" class={canReload ? undefined : 'primary'} data-autofocus={!canReload || undefined} onClick={tryAgain}>
          Try again
        </button>
        {canReload && (
          <button type="button" class="primary" data-autofocus onClick={reload}>
            Reload
          </button>
        )}
      </div>
    </Dialog>
  );
}

/** Shown if the stored session's core doesn't respond. The console retries until it does. */
export function Unreachable({ detail }: { detail: string }) {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    let isLeft = false;
    const retry = () => {
      if (!isLeft) timer = setTimeout(() => void loadStartupState().then(retry), retryMs);
    };
    retry();
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, []);
  return <ErrorCard title="Can’t reach the server" text={`${detail} The console retries every few seconds.`} retry={loadStartupState} />;
}

/** Shown until the core has said whether the stored session is still valid. */
export function Splash() {
  return (
    <main class="entrance" aria-busy="true">
      <section class="card splash">
        <Mark />
        <p role="status" class="loading">
          Opening your session…
        </p>
      </section>
    </main>
  );
}

function ErrorCard({ title, text, retry }: Explanation & { retry: () => Promise<void> }) {
  useIgnoredCommands();
  const { isBusy, run } = useAction();
  const tryAgain = () =>
    run(async () => {
      await retry();
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
          <UseAnotherServer />
          <button type="button" class="primary" onClick={() => void tryAgain()} aria-disabled={isBusy}>
            Try again
          </button>
        </div>
      </section>
    </main>
  );
}

function UseAnotherServer() {
  return choosesServer() ? (
    <button type="button" onClick={() => leave()}>
      Use another server
    </button>
  ) : null;
}
