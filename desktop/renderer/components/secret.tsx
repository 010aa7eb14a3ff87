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
  /** What the secret is, for its label: "Key value". */
  label: string;
  secret: Once;
  children: ComponentChildren;
  /** What is lost without it, for the question that is asked before it goes unsaved. */
  lost: string;
  /** Goes up when something outside asks to close, such as the window's own button. */
  closeRequests?: number;
  /** @param unsaved it was closed on purpose without having been saved */
  onClose: (unsaved: boolean) => void;
};

/** Shows a secret once, and asks before it goes. */
export function SecretDialog({ title, label, secret, children, lost, closeRequests = 0, onClose }: SecretDialogProps) {
  const [isAsking, setAsking] = useState(false);
  const [isCopied, setCopied] = useState(false);
  const value = useRef<HTMLTextAreaElement>(null);

  useEffect(() => {
    if (closeRequests > 0) setAsking(true);
  }, [closeRequests]);
  // Written past the virtual tree, which would keep it, and taken away with the dialog.
  useLayoutEffect(() => {
    const element = value.current;
    if (element) element.value = secret.text;
    return () => {
      if (element) element.value = '';
      secret.drop();
    };
  }, [secret]);

  async function copy(): Promise<void> {
    await window.callkey.copySecret(secret.text);
    setCopied(true);
    announce(`${label} copied. The clipboard is cleared in a minute.`);
  }

  return (
    <Dialog title={title} isAlert isWide onDismiss={() => setAsking(true)}>
      {children}
      <label for="secret">{label}</label>
      <div class="secret">
        <textarea ref={value} id="secret" readOnly rows={2} spellcheck={false} onFocus={({ currentTarget }) => currentTarget.select()} />
        <button type="button" onClick={() => void copy()} autofocus>
          <Icon name="copy" /> {isCopied ? 'Copied' : 'Copy'}
        </button>
      </div>
      {isAsking ? (
        <div class="question" role="alert">
          <p>
            <strong>Close without saving it?</strong> {lost}
          </p>
          <div class="actions">
            <button type="button" class="danger" onClick={() => onClose(true)}>
              Close Without Saving
            </button>
            <FocusedButton onClick={() => setAsking(false)}>Go Back</FocusedButton>
          </div>
        </div>
      ) : (
        <div class="actions">
          <button type="button" class="primary" onClick={() => onClose(false)}>
            I've Saved It
          </button>
        </div>
      )}
    </Dialog>
  );
}

function FocusedButton({ onClick, children }: { onClick: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLButtonElement>(null);
  useEffect(() => ref.current?.focus(), []);
  return (
    <button ref={ref} type="button" onClick={onClick}>
      {children}
    </button>
  );
}
