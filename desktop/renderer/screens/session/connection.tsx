import { useEffect, useRef, useState } from 'preact/hooks';
import { describeLineProblem, normalizeLine } from '#contract/text/text.ts';
import { type Failure, maxServerLabel, type RememberedServer, serverColors } from '../../../ipc.ts';
import { Dialog } from '../../components/dialog.tsx';
import { FormDialog, SelectField, TextField, useAction } from '../../components/form.tsx';
import { Icon, Mark } from '../../components/icons.tsx';
import { announce, warn } from '../../state/announcement.ts';
import { useIgnoredCommands } from '../../state/commands.ts';
import { capitalized, serverHost } from '../../state/labels.ts';
import { knownServers, loadServers } from '../../state/server-marks.ts';
import { addServer, forgetServer, leave, loadStartupState, server, session, switchServer, tryAgain } from '../../state/session.ts';

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
    <Dialog title={title} lead={text} isAlert>
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
        <p role="status" class="faint">
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

export function Servers({ onClose }: { onClose: () => void }) {
  const servers = knownServers.value;
  const [marking, setMarking] = useState<RememberedServer | null>(null);
  const closeButton = useRef<HTMLButtonElement>(null);
  useEffect(() => void loadServers(), []);

  async function forget({ address }: RememberedServer): Promise<void> {
    const isOver = await forgetServer(address);
    (isOver ? announce : warn)(
      `Forgot ${serverHost(address)}.${isOver ? '' : ' It didn’t respond, so your session there wasn’t ended. It expires after a day without use.'}`,
    );
    // Otherwise, the sign-in form would still show the forgotten server.
    if (!session.peek() && address === server.peek()) addServer();
    await loadServers();
    closeButton.current?.focus();
  }

  if (marking) return <MarkServer server={marking} onClose={() => setMarking(null)} />;
  return (
    <Dialog title="Switch server" onDismiss={onClose}>
      {servers.length === 0 && <p class="hint">No saved servers.</p>}
      <ul class="servers stack-close">
        {servers.map((each) => (
          <Server
            key={each.address}
            server={each}
            isOpen={session.value !== null && each.address === server.value}
            onSwitch={() => {
              onClose();
              void switchServer(each.address);
            }}
            onMark={() => setMarking(each)}
            onForget={() => void forget(each)}
          />
        ))}
      </ul>
      <div class="actions">
        {session.value && (
          <button type="button" onClick={() => addServer()}>
            Add a server
          </button>
        )}
        <button ref={closeButton} type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

type ServerProps = { server: RememberedServer; isOpen: boolean; onSwitch: () => void; onMark: () => void; onForget: () => void };

function Server({ server: { address, email, isSignedIn, label, color }, isOpen, onSwitch, onMark, onForget }: ServerProps) {
  const host = serverHost(address);
  const state = isOpen ? 'Current' : isSignedIn ? 'Signed in' : 'Signed out';
  return (
    <li>
      <button
        type="button"
        class="quiet"
        aria-current={isOpen ? 'true' : undefined}
        aria-disabled={isOpen}
        onClick={isOpen ? undefined : onSwitch}
      >
        <span class="name clip">
          {color && <span class="server-color" style={{ '--server': `var(--server-${color})` }} aria-hidden="true" />}
          {label ?? host}
        </span>
        <span class="caption clip">{[label === undefined ? '' : host, state, email].filter((part) => part !== '').join(' · ')}</span>
      </button>
      <button type="button" class="quiet" aria-label={`Edit the name and color of ${host}`} onClick={onMark}>
        Edit
      </button>
      {!isOpen && (
        <button type="button" class="quiet icon-only" aria-label={`Forget ${host}`} data-tip="Forget" onClick={onForget}>
          <Icon name="trash" />
        </button>
      )}
    </li>
  );
}

function MarkServer({ server: { address, label = '', color }, onClose }: { server: RememberedServer; onClose: () => void }) {
  const [name, setName] = useState(label);
  const [chosen, choose] = useState(color);
  const line = normalizeLine(name, maxServerLabel);
  const problem = line === '' ? null : describeLineProblem(line, maxServerLabel);
  return (
    <FormDialog
      title="Name and color"
      lead={serverHost(address)}
      problems={{ name: problem }}
      act={async () => {
        await window.callkey.markServer({ address, label: line === '' ? undefined : line, color: chosen });
        await loadServers();
        return { ok: true, value: null };
      }}
      onDone={onClose}
      verb="Save"
      onClose={onClose}
    >
      <TextField
        name="name"
        label="Name"
        error={problem}
        hint="Only you see it. For example, Production"
        value={name}
        onInput={setName}
        autofocus
      />
      <SelectField
        label="Color"
        value={chosen ?? ''}
        options={[['', 'None'], ...serverColors.map((each) => [each, capitalized(each)] as const)]}
        onChange={(each) => choose(each === '' ? undefined : each)}
      />
    </FormDialog>
  );
}
