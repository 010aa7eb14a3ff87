import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { announce } from '../../state/announcement.ts';
import { Icon } from '../icons.tsx';
import { Dialog } from './dialog.tsx';

/** Holds a secret until its dialog closes. No signal, prop or state holds it, since those outlive the dialog. */
export class OneTimeSecret {
  #secret: string | null;

  constructor(secret: string) {
    this.#secret = secret;
  }

  get text(): string {
    return this.#secret ?? '';
  }

  drop(): void {
    this.#secret = null;
  }
}

type SecretDialogProps = {
  title: string;
  lead: ComponentChildren;
  /** The name of the secret: "Key value". */
  label: string;
  secret: OneTimeSecret;
  /** The number of lines to show. */
  rows?: number;
  /** Another format in which the secret can be copied, such as a line of a `.env` file. */
  asLine?: (secret: string) => string;
  children?: ComponentChildren;
  /** What the user loses by closing without saving. */
  lost: string;
  /** @param unsaved whether the user chose to close without saving */
  onClose: (unsaved: boolean) => void;
};

const clipboardStays = 'After you store it, copy something else: a web page can’t clear your clipboard.';

/** Shows a secret once. If the user presses Escape, clicks the backdrop or closes the window, asks before the secret is discarded. */
export function SecretDialog({ title, lead, label, secret, rows = 2, asLine, children, lost, onClose }: SecretDialogProps) {
  const [asking, setAsking] = useState<'dialog' | 'window' | null>(null);
  const [copied, setCopied] = useState<'value' | 'line' | 'refused' | null>(null);
  const { guardsSecrets } = window.callkey.capabilities;
  const value = useRef<HTMLTextAreaElement>(null);
  const copyButton = useRef<HTMLButtonElement>(null);

  useEffect(
    () =>
      window.callkey.onCommand((command) => {
        if (command === 'close') setAsking('window');
      }),
    [],
  );
  // The secret is written directly to the element, because the virtual DOM would keep a copy. It's erased however the dialog is closed.
  useLayoutEffect(() => {
    const element = value.current;
    if (element) element.value = secret.text;
    return () => {
      if (element) element.value = '';
      secret.drop();
      void window.callkey.dismissSecret();
    };
  }, [secret]);

  async function copy(form: 'value' | 'line'): Promise<void> {
    try {
      await window.callkey.copySecret(form === 'line' && asLine ? asLine(secret.text) : secret.text);
    } catch {
      value.current?.select();
      setCopied('refused');
      return;
    }
    setCopied(form);
    announce(guardsSecrets ? `${label} copied. The console will clear the clipboard in one minute.` : 'Copied.');
  }
  function goBack(): void {
    setAsking(null);
    copyButton.current?.focus();
  }
  function closeUnsaved(): void {
    onClose(true);
    if (asking === 'window') void window.callkey.closeWindow();
  }

  return (
    <Dialog title={title} lead={lead} isAlert isWide onDismiss={() => setAsking(asking ?? 'dialog')}>
      <div class="field">
        <label for="secret">{label}</label>
        <div class="secret">
          <textarea ref={value} id="secret" readOnly rows={rows} spellcheck={false} />
          <div class="actions">
            <button ref={copyButton} type="button" onClick={() => void copy('value')} data-autofocus>
              <Icon name="copy" /> {copied === 'value' ? 'Copied' : 'Copy'}
            </button>
            {asLine && (
              <button type="button" onClick={() => void copy('line')}>
                <Icon name="copy" /> {copied === 'line' ? 'Copied .env line' : 'Copy as .env line'}
              </button>
            )}
          </div>
        </div>
        {!guardsSecrets && <p class="hint">{clipboardStays}</p>}
        {copied === 'refused' && (
          <p class="error" role="alert">
            Your browser blocked copying. The value is selected: press Ctrl+C or ⌘C.
          </p>
        )}
      </div>
      {children}
      {asking === null ? (
        <div class="actions at-start">
          {/* The second click of a double-click on the button that opened this dialog must not close it. */}
          <button
            type="button"
            class="primary"
            onClick={({ detail }) => {
              if (detail < 2) onClose(false);
            }}
          >
            I've Saved It
          </button>
        </div>
      ) : (
        <div class="question" role="alert">
          <p>
            <strong>Close without saving?</strong> {lost}
          </p>
          <div class="actions">
            <button type="button" class="danger" onClick={closeUnsaved}>
              Close without saving
            </button>
            <FocusedButton onClick={goBack}>Go back</FocusedButton>
          </div>
        </div>
      )}
    </Dialog>
  );
}

function FocusedButton({ onClick, children }: { onClick: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => ref.current?.focus(), []);
  return (
    <button ref={ref} type="button" onClick={onClick}>
      {children}
    </button>
  );
}
