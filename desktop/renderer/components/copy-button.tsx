import { useState } from 'preact/hooks';
import { announce } from '../state/announcement.ts';
import { Icon, type IconName } from './icons.tsx';

type CopyButtonProps = {
  text: string | (() => string);
  /** Names the text: "request ID". */
  noun: string;
  icon?: IconName;
  /** Whether the app clears the clipboard after a minute. */
  isSecret?: boolean;
};

/** Copies a text. */
export function CopyButton({ text, noun, icon = 'copy', isSecret = false }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    const copied = typeof text === 'string' ? text : text();
    await (isSecret ? window.callkey.copySecret(copied) : window.callkey.copyText(copied));
    setCopied(true);
    announce(`Copied the ${noun}.`);
  }
  return (
    <button
      type="button"
      class="quiet icon-only"
      aria-label={`Copy ${noun}`}
      data-tip={`Copy ${noun}`}
      onClick={() => void copy()}
      onBlur={() => setCopied(false)}
    >
      <Icon name={isCopied ? 'check' : icon} />
    </button>
  );
}
