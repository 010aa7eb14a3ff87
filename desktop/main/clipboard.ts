import { hash } from 'node:crypto';
import * as electron from 'electron';

const clearedAfterMs = 60_000;

type Place = { readText(): Promise<string>; clear(): void };
const { clipboard } = electron;

/** Linux's primary selection, which a middle click pastes. Selected text and everything that Chromium copies is copied there, too. */
const selection: Place | undefined = process.platform === 'linux' ? (clipboard.selection ?? olderSelection()) : undefined;

/** Until Electron 44, an argument chose the selection. */
function olderSelection(): Place {
  const call = (method: () => unknown) => Reflect.apply(method, clipboard, ['selection']);
  return { readText: async () => String(call(clipboard.readText)), clear: () => void call(clipboard.clear) };
}

const noHistory = '\0\0\0\0';
/** The formats that ask clipboard managers not to keep a text. */
const hints = {
  linux: { 'x-kde-passwordManagerHint': 'secret' },
  darwin: { 'org.nspasteboard.ConcealedType': 'secret' },
  win32: {
    ExcludeClipboardContentFromMonitorProcessing: noHistory,
    CanIncludeInClipboardHistory: noHistory,
    CanUploadToCloudClipboard: noHistory,
  },
}[process.platform === 'darwin' || process.platform === 'win32' ? process.platform : 'linux'];

async function write(secret: string): Promise<void> {
  // Electron can write several formats at once since release 44.
  const Item: typeof electron.ClipboardItem | undefined = electron.ClipboardItem;
  if (!Item) return clipboard.writeText(secret);
  const formats = Object.entries(hints).map(([name, value]) => [`electron application/osclipboard;format="${name}"`, new Blob([value])]);
  await clipboard.write([new Item({ 'text/plain': secret, ...Object.fromEntries(formats) })]);
}

/** Ignores white space, because codes are shown in groups, and selecting a text may include the end of its line. */
const digest = (text: string) => hash('sha256', text.replace(/\s+/g, ''));

/** Copies secrets, and clears the clipboard after a minute and on quitting if a secret is still there. */
export class SecretClipboard {
  /** Hashes of the secrets that were shown or copied, to recognize them without storing them. */
  readonly #digests = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  /** Remembers a secret on the screen, because the user may select it. */
  trackVisible(secret: string): void {
    for (const text of [secret, ...secret.split('\n')]) this.#digests.add(digest(text));
  }

  async clearSelection(): Promise<void> {
    if (selection) await this.#clearPlace(selection);
  }

  async copy(secret: string): Promise<void> {
    this.trackVisible(secret);
    await write(secret);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.clear(), clearedAfterMs);
    await this.clearSelection();
  }

  /** Copies a text that isn't secret. It's never cleared. */
  async copyText(text: string): Promise<void> {
    await clipboard.writeText(text);
  }

  async clear(): Promise<void> {
    clearTimeout(this.#timer);
    await Promise.all([this.#clearPlace(clipboard), this.clearSelection()]);
  }

  /** Whether a place still holds one of the secrets. */
  async holdsSecret(place: Place = clipboard): Promise<boolean> {
    return this.#digests.has(digest(await place.readText()));
  }

  async #clearPlace(place: Place): Promise<void> {
    if (await this.holdsSecret(place)) place.clear();
  }
}
