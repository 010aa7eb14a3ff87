import { useEffect, useRef, useState } from 'preact/hooks';
import type { RememberedServer } from '../../../ipc.ts';
import { Dialog } from '../../components/forms/dialog.tsx';
import { Icon } from '../../components/icons.tsx';
import { announce, warn } from '../../state/announcement.ts';
import { addServer, forgetServer, server, session, switchServer } from '../../state/session.ts';
import { serverHost } from '../../state/workspace.ts';

/** Lists the servers that the user has signed in to, to switch to one or forget it. */
export function Servers({ onClose }: { onClose: () => void }) {
  const [servers, setServers] = useState<RememberedServer[]>([]);
  const closeButton = useRef<HTMLButtonElement>(null);
  const load = async () => setServers(await window.callkey.listServers());
  useEffect(() => void load(), []);

  async function forget({ address }: RememberedServer): Promise<void> {
    const isOver = await forgetServer(address);
    (isOver ? announce : warn)(
      `Forgot ${serverHost(address)}.${isOver ? '' : ' It didn’t respond, so your session there wasn’t ended. It expires after a day without use.'}`,
    );
    // Otherwise, the sign-in form would still show the forgotten server.
    if (!session.peek() && address === server.peek()) addServer();
    await load();
    closeButton.current?.focus();
  }

  return (
    <Dialog title="Switch server" onDismiss={onClose}>
      {servers.length === 0 && <p class="hint">No saved servers.</p>}
      <ul class="servers">
        {servers.map((each) => (
          <Server
            key={each.address}
            server={each}
            isOpen={session.value !== null && each.address === server.value}
            onSwitch={() => {
              onClose();
              void switchServer(each.address);
            }}
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

type ServerProps = { server: RememberedServer; isOpen: boolean; onSwitch: () => void; onForget: () => void };

function Server({ server: { address, email, isSignedIn }, isOpen, onSwitch, onForget }: ServerProps) {
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
        <span class="name clip">{host}</span>
        <span class="caption clip">
          {state} · {email}
        </span>
      </button>
      {!isOpen && (
        <button type="button" class="quiet icon-only" aria-label={`Forget ${host}`} data-tip="Forget" onClick={onForget}>
          <Icon name="trash" />
        </button>
      )}
    </li>
  );
}
