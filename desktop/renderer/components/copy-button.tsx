import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { announce } from '../state/announcement.ts';
import { Icon, type IconName } from './icons.tsx';

type CopyButtonProps = {
  text: string | (() => string);
  /** Names the text: "request ID". */
  noun: string;
  icon?: IconName;
  /** Shown on the button. Without it, the button has only an icon. */
  label?: string;
  /** Whether the app clears the clipboard after a minute. The button needs a label then, because it counts down. */
  isSecret?: boolean;
  /** Selects the text, so that the user can copy it if the browser refuses. */
  onRefused?: () => void;
  autofocus?: boolean;
};

export function CopyButton({ text, noun, icon = 'copy', label, isSecret = false, onRefused, autofocus = false }: CopyButtonProps) {
  const [by] = useState(() => Symbol(noun));
  const last = lastCopy.value?.by === by ? lastCopy.value : null;
  const secondsLeft = useCountdown(last?.clearsAt ?? null, noun);

  async function copyText(): Promise<void> {
    if (!(await copy(by, typeof text === 'string' ? text : text(), isSecret))) return onRefused?.();
    const clears = lastCopy.peek()?.clearsAt == null ? '' : ' The console will clear the clipboard in one minute.';
    announce(`Copied the ${noun}.${clears}`);
  }

  const shown = last?.state === 'cleared' ? 2 : last?.state === 'copied' ? 1 : 0;
  const clears = isSecret && window.callkey.capabilities.guardsSecrets;
  const countdown = clears && (
    <span class="countdown" aria-hidden="true">
      · {secondsLeft ?? 60} s
    </span>
  );
  const texts = [label, <>Copied {countdown}</>, ...(clears ? ['Cleared. Copy again'] : [])];
  return (
    <>
      <button
        type="button"
        class={label === undefined ? 'quiet icon-only' : 'one-of'}
        aria-label={label === undefined ? `Copy ${noun}` : undefined}
        data-tip={label === undefined ? `Copy ${noun}` : undefined}
        data-autofocus={autofocus || undefined}
        onClick={() => void copyText()}
        onBlur={() => {
          if (last && label === undefined) lastCopy.value = null;
        }}
      >
        {label === undefined ? (
          <Icon name={shown === 1 ? 'check' : icon} />
        ) : (
          // The button has the width of its longest text, so that nothing moves when it's clicked.
          texts.map((text, index) => (
            <span key={index} data-shown={index === shown || undefined}>
              <Icon name={index === 1 ? 'check' : icon} />
              <span>{text}</span>
            </span>
          ))
        )}
      </button>
      {last?.state === 'refused' && (
        <span class="error" role="alert">
          Your browser blocked copying.{onRefused && ' The value is selected: press Ctrl+C or ⌘C.'}
        </span>
      )}
    </>
  );
}

/** Returns how many seconds are left until a time, and tells the user when the clipboard has been cleared. */
function useCountdown(clearsAt: number | null, noun: string): number | null {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (clearsAt === null) return;
    setNow(Date.now());
    const timer = setInterval(() => {
      setNow(Date.now());
      if (Date.now() < clearsAt || lastCopy.value?.clearsAt !== clearsAt) return;
      lastCopy.value = { ...lastCopy.value, state: 'cleared', clearsAt: null };
      announce(`The ${noun} was cleared from the clipboard.`);
    }, 1_000);
    // The user may have copied something else in another program, and the app clears the clipboard earlier when the screen is locked.
    const checkClipboard = async () => {
      const isHeld = await window.callkey.holdsSecret();
      if (!isHeld && lastCopy.peek()?.clearsAt === clearsAt) lastCopy.value = null;
    };
    addEventListener('focus', checkClipboard);
    return () => {
      clearInterval(timer);
      removeEventListener('focus', checkClipboard);
    };
  }, [clearsAt]);
  return clearsAt === null ? null : Math.min(60, Math.max(0, Math.ceil((clearsAt - now) / 1_000)));
}

/** How a copy button was last used. @property by the button @property clearsAt when the app clears the clipboard; null if it doesn't */
type Copy = { by: symbol; state: 'copied' | 'refused' | 'cleared'; clearsAt: number | null };

/** The last use of any copy button. The clipboard holds only one text, so only one button says that its text was copied. */
export const lastCopy = signal<Copy | null>(null);

const clearedAfterMs = 60_000;

/** Copies a text. @returns false if the browser refuses */
async function copy(by: symbol, text: string, isSecret: boolean): Promise<boolean> {
  try {
    await (isSecret ? window.callkey.copySecret(text) : window.callkey.copyText(text));
  } catch {
    lastCopy.value = { by, state: 'refused', clearsAt: null };
    return false;
  }
  lastCopy.value = {
    by,
    state: 'copied',
    clearsAt: isSecret && window.callkey.capabilities.guardsSecrets ? Date.now() + clearedAfterMs : null,
  };
  return true;
}

/** Returns the selected text, also if it's selected in a field, which `getSelection` ignores. */
export function selectedText(): string {
  const { activeElement } = document;
  if (activeElement instanceof HTMLTextAreaElement || activeElement instanceof HTMLInputElement)
    return activeElement.value.slice(activeElement.selectionStart ?? 0, activeElement.selectionEnd ?? 0);
  return String(getSelection() ?? '');
}
