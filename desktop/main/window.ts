import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { app, BrowserWindow, nativeTheme, screen } from 'electron';
import { type Command, commandChannel } from '../ipc.ts';
import { startPage } from './app-protocol.ts';
import { showEditMenu } from './menu.ts';
import type { SettingsFile } from './settings.ts';
import { placeOnScreen } from './window-place.ts';

/** What shows before the page does: the page's own ground (tokens.css), so that nothing flashes. */
const backgrounds = { light: '#fbfbfa', dark: '#17191c' };
const background = () => (nativeTheme.shouldUseDarkColors ? backgrounds.dark : backgrounds.light);

/** The one window of the app. */
export class ConsoleWindow {
  readonly browserWindow: BrowserWindow;
  readonly #settings: SettingsFile;
  #showsKeyValue = false;

  constructor(settings: SettingsFile) {
    this.#settings = settings;
    const kept = settings.current.window;
    const { id } = screen.getPrimaryDisplay();
    const screens = screen.getAllDisplays().toSorted((one, other) => Number(other.id === id) - Number(one.id === id));
    this.browserWindow = new BrowserWindow({
      ...placeOnScreen(
        kept,
        screens.map(({ workArea }) => workArea),
      ),
      minWidth: 480,
      minHeight: 400,
      show: false,
      backgroundColor: background(),
      webPreferences: {
        preload: join(import.meta.dirname, '../preload/preload.cjs'),
        sandbox: true,
        contextIsolation: true,
        nodeIntegration: false,
        spellcheck: false,
        devTools: !app.isPackaged,
      },
    });
    if (kept?.isMaximized) this.browserWindow.maximize();
    this.#listen();
  }

  #listen(): void {
    const { browserWindow } = this;
    browserWindow.once('ready-to-show', () => browserWindow.show());
    browserWindow.on('close', (event) => {
      this.#rememberPlace();
      if (!this.#showsKeyValue) return;
      event.preventDefault();
      this.focus();
      this.send('close');
    });
    browserWindow.webContents.on('context-menu', (_event, asked) => showEditMenu(asked));
    const repaint = () => browserWindow.setBackgroundColor(background());
    nativeTheme.on('updated', repaint);
    browserWindow.once('closed', () => nativeTheme.off('updated', repaint));
  }

  #rememberPlace(): void {
    const place = { ...this.browserWindow.getNormalBounds(), isMaximized: this.browserWindow.isMaximized() };
    void this.#settings.change({ window: place });
  }

  async open(): Promise<void> {
    try {
      await this.browserWindow.loadURL(startPage);
    } catch (error) {
      // Electron tells of a crash after this.
      await setImmediate();
      // Closed or crashed before it had opened: that is seen to elsewhere.
      const isGone = this.browserWindow.isDestroyed() || this.browserWindow.webContents.isCrashed();
      if (!isGone) throw error;
    }
  }

  focus(): void {
    if (this.browserWindow.isMinimized()) this.browserWindow.restore();
    this.browserWindow.show();
    this.browserWindow.focus();
  }

  send(command: Command): void {
    this.browserWindow.webContents.send(commandChannel, command);
  }

  get showsKeyValue(): boolean {
    return this.#showsKeyValue;
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
