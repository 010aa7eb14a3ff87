import { signal } from '@preact/signals';

/** How a copy button was last used. @property by the button @property clearsAt when the app clears the clipboard; null if it doesn't */
type Copy = { by: symbol; state: 'copied' | 'refused' | 'cleared'; clearsAt: number | null };

/** The last use of any copy button. The clipboard holds only one text, so only one button says that its text was copied. */
export const lastCopy = signal<Copy | null>(null);

const clearedAfterMs = 60_000;

/** Copies a text. @returns false if the browser refuses */
export async function copy(by: symbol, text: string, isSecret: boolean): Promise<boolean> {
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
