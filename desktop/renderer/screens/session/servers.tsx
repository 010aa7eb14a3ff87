import { useEffect, useRef, useState } from 'preact/hooks';
import { describeLineProblem, normalizeLine } from '#contract/text/text.ts';
import { maxServerLabel, type RememberedServer, serverColors } from '../../../ipc.ts';
import { Dialog } from '../../components/dialog.tsx';
import { Field, focusFirstInvalid, TextField } from '../../components/form.tsx';
import { Icon } from '../../components/icons.tsx';
import { announce, warn } from '../../state/announcement.ts';
import { serverHost } from '../../state/labels.ts';
import { knownServers, loadServers } from '../../state/server-marks.ts';
import { addServer, forgetServer, server, session, switchServer } from '../../state/session.ts';

/** Lists the servers that the user has signed in to, to switch to one or forget it. */
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
          {color && <span class="server-color" data-server={color} aria-hidden="true" />}
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

const colorLabels = { red: 'Red', orange: 'Orange', green: 'Green', blue: 'Blue', purple: 'Purple' } as const;

/** Lets the user name and color a server, so that they don't mistake production for a test. */
function MarkServer({ server: { address, label = '', color }, onClose }: { server: RememberedServer; onClose: () => void }) {
  const [name, setName] = useState(label);
  const [chosen, choose] = useState(color);
  const form = useRef<HTMLFormElement>(null);
  const line = normalizeLine(name, maxServerLabel);
  const error = line === '' ? null : describeLineProblem(line, maxServerLabel);
  async function save(event: Event): Promise<void> {
    event.preventDefault();
    if (error !== null) {
      focusFirstInvalid(form.current);
      return;
    }
    await window.callkey.markServer({ address, label: line === '' ? undefined : line, color: chosen });
    await loadServers();
    onClose();
  }
  return (
    <Dialog title="Name and color" lead={serverHost(address)} onDismiss={onClose}>
      <form ref={form} onSubmit={(event) => void save(event)} noValidate>
        <TextField
          label="Name"
          error={error}
          hint="Only you see it. For example, Production"
          type="text"
          autocomplete="off"
          value={name}
          onInput={setName}
          autofocus
        />
        <Field label="Color">
          {(binding) => (
            <select
              {...binding}
              value={chosen ?? ''}
              onChange={({ currentTarget }) => choose(serverColors.find((each) => each === currentTarget.value))}
            >
              <option value="">None</option>
              {serverColors.map((each) => (
                <option key={each} value={each}>
                  {colorLabels[each]}
                </option>
              ))}
            </select>
          )}
        </Field>
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
