import { join } from 'node:path';
import { BrowserWindow } from 'electron';
import { type Command, commandChannel } from '../ipc.ts';
import { startPage } from './app-protocol.ts';

/** The one window of the app. */
export class ConsoleWindow {
  readonly browserWindow: BrowserWindow;
  #showsKeyValue = false;

  constructor() {
    this.browserWindow = new BrowserWindow({
      width: 1100,
      height: 760,
      minWidth: 480,
      minHeight: 400,
      show: false,
      webPreferences: {
        preload: join(import.meta.dirname, '../preload/preload.cjs'),
        sandbox: true,
        contextIsolation: true,
        nodeIntegration: false,
        spellcheck: false,
      },
    });
    this.browserWindow.once('ready-to-show', () => this.browserWindow.show());
    this.browserWindow.on('close', (event) => {
      if (!this.#showsKeyValue) return;
      event.preventDefault();
      this.send('close');
    });
  }

  open(): Promise<void> {
    return this.browserWindow.loadURL(startPage);
  }

  send(command: Command): void {
    this.browserWindow.webContents.send(commandChannel, command);
  }

  /** While a key value shows, screens are not captured and closing asks first. */
  guardKeyValue(shows: boolean): void {
    this.#showsKeyValue = shows;
    this.browserWindow.setContentProtection(shows);
  }

  close(): void {
    this.#showsKeyValue = false;
    this.browserWindow.close();
  }
}
