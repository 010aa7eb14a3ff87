import { useState } from 'preact/hooks';
import { announce } from '../state/announcement.ts';
import { Icon } from './icons.tsx';

/**
 * Copies a text that isn't secret.
 *
 * @property what names the text: "request ID"
 */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const [isCopied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    await window.callkey.copyText(text);
    setCopied(true);
    announce(`Copied the ${what}.`);
  }
  return (
    <button
      type="button"
      class="quiet icon-only"
      aria-label={`Copy ${what}`}
      data-tip="Copy"
      onClick={() => void copy()}
      onBlur={() => setCopied(false)}
    >
      <Icon name={isCopied ? 'check' : 'copy'} />
    </button>
  );
}
