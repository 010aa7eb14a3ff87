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

export function CopyButton({ text, noun, icon = 'copy', isSecret = false }: CopyButtonProps) {
  const [copied, setCopied] = useState<'copied' | 'refused' | null>(null);
  async function copy(): Promise<void> {
    const value = typeof text === 'string' ? text : text();
    try {
      await (isSecret ? window.callkey.copySecret(value) : window.callkey.copyText(value));
    } catch {
      setCopied('refused');
      return;
    }
    setCopied('copied');
    announce(`Copied the ${noun}.`);
  }
  return (
    <>
      <button
        type="button"
        class="quiet icon-only"
        aria-label={`Copy ${noun}`}
        data-tip={`Copy ${noun}`}
        onClick={() => void copy()}
        onBlur={() => setCopied(null)}
      >
        <Icon name={copied === 'copied' ? 'check' : icon} />
      </button>
      {copied === 'refused' && (
        <span class="error" role="alert">
          Your browser blocked copying.
        </span>
      )}
    </>
  );
}
