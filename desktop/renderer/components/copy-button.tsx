import { useState } from 'preact/hooks';
import { announce } from '../state/announcement.ts';
import { Icon, type IconName } from './icons.tsx';

type CopyButtonProps = {
  text: string | (() => string);
  /** Names the text: "request ID". */
  what: string;
  icon?: IconName;
  /** Whether the app clears the clipboard after a minute. */
  isSecret?: boolean;
};

/** Copies a text. */
export function CopyButton({ text, what, icon = 'copy', isSecret = false }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    const copied = typeof text === 'string' ? text : text();
    await (isSecret ? window.callkey.copySecret(copied) : window.callkey.copyText(copied));
    setCopied(true);
    announce(`Copied the ${what}.`);
  }
  return (
    <button
      type="button"
      class="quiet icon-only"
      aria-label={`Copy ${what}`}
      data-tip={`Copy ${what}`}
      onClick={() => void copy()}
      onBlur={() => setCopied(false)}
    >
      <Icon name={isCopied ? 'check' : icon} />
    </button>
  );
}
