import { hash } from 'node:crypto';
import { clipboard } from 'electron';

const clearedAfterMs = 60_000;

/** Puts secrets on the clipboard, and takes them off again if they are still there: after a minute, and when the app quits. */
export class SecretClipboard {
  /** Enough to recognise the secret by, and nothing more of it. */
  #digest: string | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** What shows, as far as it takes to recognise it: on Linux, selecting a text copies it. */
  #shown: string | null = null;

  know(secret: string): void {
    this.#shown = hash('sha256', secret);
  }

  /** Takes what showed off Linux's selection, from where a middle click would paste it. */
  async dropSelection(): Promise<void> {
    const shown = this.#shown;
    this.#shown = null;
    // Electron has it on Linux alone.
    const selection: Electron.Clipboard | undefined = clipboard.selection;
    if (!selection || shown === null) return;
    if (hash('sha256', (await selection.readText()).trim()) === shown) selection.clear();
  }

  async copy(secret: string): Promise<void> {
    await clipboard.writeText(secret);
    this.#digest = hash('sha256', secret);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.clear(), clearedAfterMs);
  }

  async clear(): Promise<void> {
    clearTimeout(this.#timer);
    const digest = this.#digest;
    this.#digest = null;
    if (digest !== null && hash('sha256', await clipboard.readText()) === digest) await clipboard.clear();
  }
}
