import { hash } from 'node:crypto';
import { clipboard } from 'electron';

const clearedAfterMs = 60_000;

/** Copies secrets, and clears the clipboard after a minute and on quitting if the secret is still there. */
export class SecretClipboard {
  /** A hash of the copied secret, to recognize it without storing it. */
  #copiedDigest: string | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** A hash of the visible secret. On Linux, selecting text copies it to the primary selection. */
  #visibleDigest: string | null = null;

  trackVisible(secret: string): void {
    this.#visibleDigest = hash('sha256', secret);
  }

  /** Clears Linux's primary selection if it contains the secret, which a middle click would otherwise paste. */
  async clearSelection(): Promise<void> {
    const digest = this.#visibleDigest;
    this.#visibleDigest = null;
    // Electron supports the primary selection only on Linux.
    const selection: Electron.Clipboard | undefined = clipboard.selection;
    if (!selection || digest === null) return;
    if (hash('sha256', (await selection.readText()).trim()) === digest) selection.clear();
  }

  async copy(secret: string): Promise<void> {
    await clipboard.writeText(secret);
    this.#copiedDigest = hash('sha256', secret);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.clear(), clearedAfterMs);
  }

  /** Copies a text that isn't secret. It's never cleared. */
  async copyText(text: string): Promise<void> {
    await clipboard.writeText(text);
  }

  async clear(): Promise<void> {
    clearTimeout(this.#timer);
    const digest = this.#copiedDigest;
    this.#copiedDigest = null;
    if (digest !== null && hash('sha256', await clipboard.readText()) === digest) await clipboard.clear();
  }
}
