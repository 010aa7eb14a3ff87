import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { announce } from '../state/announcement.ts';
import { Dialog } from './dialog.tsx';
import { Icon } from './icons.tsx';

/** A secret that is shown once. It is taken out of here, not copied: nothing else keeps it. */
export class Once {
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

export type SecretDialogProps = {
  title: string;
  lead: ComponentChildren;
  /** What the secret is, for its label: "Key value". */
  label: string;
  secret: Once;
  children?: ComponentChildren;
  /** What is lost without it, for the question that is asked before it goes unsaved. */
  lost: string;
  /** @param unsaved it was closed on purpose without having been saved */
  onClose: (unsaved: boolean) => void;
};

/** Shows a secret once, and asks before it goes: on Escape, on the backdrop, and when the window is to be closed. */
export function SecretDialog({ title, lead, label, secret, children, lost, onClose }: SecretDialogProps) {
  const [asking, setAsking] = useState<'dialog' | 'window' | null>(null);
  const [isCopied, setCopied] = useState(false);
  const value = useRef<HTMLTextAreaElement>(null);
  const copyButton = useRef<HTMLButtonElement>(null);

  useEffect(
    () =>
      window.callkey.onCommand((command) => {
        if (command === 'close') setAsking('window');
      }),
    [],
  );
  // Written past the virtual tree, which would keep it, and taken away with the dialog, whatever takes that away.
  useLayoutEffect(() => {
    const element = value.current;
    if (element) element.value = secret.text;
    return () => {
      if (element) element.value = '';
      secret.drop();
      void window.callkey.secretIsGone();
    };
  }, [secret]);

  async function copy(): Promise<void> {
    await window.callkey.copySecret(secret.text);
    setCopied(true);
    announce(`${label} copied. The clipboard is cleared in a minute.`);
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
      {children}
      <label for="secret">{label}</label>
      <div class="secret">
        <textarea ref={value} id="secret" readOnly rows={2} spellcheck={false} />
        <button ref={copyButton} type="button" onClick={() => void copy()} autofocus>
          <Icon name="copy" /> {isCopied ? 'Copied' : 'Copy'}
        </button>
      </div>
      {asking === null ? (
        <div class="actions at-start">
          {/* Away from where the button was that led here, and deaf to the second press of a double click. */}
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
            <strong>Close without saving it?</strong> {lost}
          </p>
          <div class="actions">
            <button type="button" class="danger" onClick={closeUnsaved}>
              Close Without Saving
            </button>
            <FocusedButton onClick={goBack}>Go Back</FocusedButton>
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
