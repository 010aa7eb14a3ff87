import { announce } from '../state/announcement.ts';
import { Icon } from './icons.tsx';

/**
 * Copies a text that is no secret.
 *
 * @property what names the text: "Id"
 */
export function CopyButton({ text, what }: { text: string; what: string }) {
  async function copy(): Promise<void> {
    await window.callkey.copyText(text);
    announce(`${what} copied.`);
  }
  return (
    <button type="button" class="quiet icon-only" aria-label={`Copy ${what.toLowerCase()}`} data-tip="Copy" onClick={() => void copy()}>
      <Icon name="copy" />
    </button>
  );
}
