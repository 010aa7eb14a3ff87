import { useState } from 'preact/hooks';
import { announce } from '../state/announcement.ts';
import { Icon, type IconName } from './icons.tsx';

type CopyButtonProps = {
  text: string | (() => string);
  /** Names the text: "request ID". */
  what: string;
  icon?: IconName;
};

/** Copies a text that isn't secret. */
export function CopyButton({ text, what, icon = 'copy' }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    await window.callkey.copyText(typeof text === 'string' ? text : text());
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
