import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { generalError } from '../state/failure-text.ts';
import { useSecretGuard } from '../state/secret-guard.ts';
import { CopyButton, lastCopy, selectedText } from './copy-button.tsx';
import { Dialog, Question } from './dialog.tsx';
import { ErrorText, useAction } from './form.tsx';

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
  rows?: number;
  /** Another format in which the secret can be copied, such as a line of a `.env` file. */
  asLine?: (secret: string) => string;
  children?: ComponentChildren;
  /** What the user loses by closing without saving. */
  lost: string;
  /** @param unsaved whether the user chose to close without saving */
  onClose: (unsaved: boolean) => void;
};

/** Guards a secret while the component shows it, and copies selected text as one. */
export function useVisibleSecret(): void {
  useSecretGuard();
  useEffect(() => {
    const onCopy = (event: ClipboardEvent) => {
      lastCopy.value = null;
      const text = selectedText();
      if (text === '' || !window.callkey.capabilities.guardsSecrets) return;
      event.preventDefault();
      void window.callkey.copySecret(text);
    };
    document.addEventListener('copy', onCopy);
    return () => document.removeEventListener('copy', onCopy);
  }, []);
}

/** @param handle called if the user closes the window while a secret is visible */
export function useCloseCommand(handle: () => void): void {
  useEffect(
    () =>
      window.callkey.onCommand((command) => {
        if (command === 'close') handle();
      }),
    [],
  );
}

/** Says what this system can't do to protect a visible secret. */
export function ProtectionHint() {
  const { guardsSecrets, hidesSecrets } = window.callkey.capabilities;
  return (
    <p class="hint">
      {guardsSecrets
        ? 'The console clears the clipboard one minute after you copy.'
        : 'After you store it, copy something else: a web page can’t clear your clipboard.'}
      {!hidesSecrets && ' This window can’t be hidden from screen sharing, so others see it if you share your screen.'}
    </p>
  );
}

/** Shows a secret once. If the user presses Escape, clicks the backdrop or closes the window, asks before the secret is discarded. */
export function SecretDialog({ title, lead, label, secret, rows = 2, asLine, children, lost, onClose }: SecretDialogProps) {
  const [asking, setAsking] = useState<'dialog' | 'window' | null>(null);
  const value = useRef<HTMLTextAreaElement>(null);
  const select = () => value.current?.select();
  const noun = `${label[0]?.toLowerCase()}${label.slice(1)}`;

  useVisibleSecret();
  useCloseCommand(() => setAsking('window'));
  // The secret is written directly to the element, because the virtual DOM would keep a copy. It's erased however the dialog is closed.
  useLayoutEffect(() => {
    const element = value.current;
    if (element) element.value = secret.text;
    return () => {
      if (element) element.value = '';
      secret.drop();
    };
  }, [secret]);

  function goBack(): void {
    setAsking(null);
    value.current?.closest('dialog')?.querySelector<HTMLElement>('[data-autofocus]')?.focus();
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
            <CopyButton text={() => secret.text} noun={noun} label="Copy" isSecret onRefused={select} autofocus />
            {asLine && (
              <CopyButton text={() => asLine(secret.text)} noun=".env line" label="Copy as .env line" isSecret onRefused={select} />
            )}
            {window.callkey.capabilities.guardsSecrets && (
              <SaveButton secret={secret} name={`${label.toLowerCase().replace(/\W+/g, '-')}.txt`} />
            )}
          </div>
        </div>
        <ProtectionHint />
      </div>
      {children}
      {asking === null ? (
        <div class="actions">
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
        <Question title="Close without saving?" verb="Close without saving" onConfirm={closeUnsaved} onGoBack={goBack}>
          {lost}
        </Question>
      )}
    </Dialog>
  );
}

function SaveButton({ secret, name }: { secret: OneTimeSecret; name: string }) {
  const { isBusy, failure, run } = useAction();
  const [isSaved, setSaved] = useState(false);
  const save = () =>
    run(
      () => window.callkey.saveSecret({ name, text: `${secret.text}\n` }),
      (saved) => setSaved(saved === true),
    );
  return (
    <>
      <button type="button" aria-disabled={isBusy} onClick={() => void save()}>
        {isSaved ? 'Saved to file' : 'Save to file…'}
      </button>
      <ErrorText text={generalError(failure)} />
    </>
  );
}
