import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { app, BrowserWindow, dialog, nativeTheme, screen } from 'electron';
import icon from '../icon/png/256x256.png?asset';
import { type Command, CommandQueue, commandChannel, type LinkTarget, linkChannel, progressChannel } from '../ipc.ts';
import { startPage } from './app-protocol.ts';
import { showEditMenu } from './menu.ts';
import { boundsOnScreen, type SettingsFile } from './settings.ts';

/** The page's own background (tokens.css). Any other color would flash before the page paints. */
const backgrounds = { light: '#ffffff', dark: '#101213' };
const background = () => (nativeTheme.shouldUseDarkColors ? backgrounds.dark : backgrounds.light);

export class ConsoleWindow {
  readonly browserWindow: BrowserWindow;
  readonly #settings: SettingsFile;
  /** Keep commands and links while the page loads, because Electron would drop them. */
  readonly #commands = new CommandQueue<Command>();
  readonly #links = new CommandQueue<LinkTarget>();
  #showsSecret = false;

  constructor(settings: SettingsFile) {
    this.#settings = settings;
    const last = settings.current.window;
    const { id } = screen.getPrimaryDisplay();
    const screens = screen.getAllDisplays().toSorted((a, b) => Number(b.id === id) - Number(a.id === id));
    this.browserWindow = new BrowserWindow({
      ...boundsOnScreen(
        last,
        screens.map(({ workArea }) => workArea),
      ),
      minWidth: 480,
      minHeight: 400,
      show: false,
      // On Linux, a desktop without the app's desktop file has no other icon.
      icon,
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
    if (last?.isMaximized) this.browserWindow.maximize();
    this.#listen();
  }

  #listen(): void {
    const { browserWindow } = this;
    browserWindow.once('ready-to-show', () => browserWindow.show());
    browserWindow.on('close', (event) => {
      this.#saveBounds();
      if (!this.#showsSecret) return;
      event.preventDefault();
      this.focus();
      this.send('close');
    });
    browserWindow.webContents.on('context-menu', (_event, params) => showEditMenu(params));
    this.#deliverCommands();
    const repaint = () => browserWindow.setBackgroundColor(background());
    nativeTheme.on('updated', repaint);
    browserWindow.once('closed', () => nativeTheme.off('updated', repaint));
  }

  /** The page's script listens before `dom-ready`, because it's a module, and modules run before the document counts as parsed. */
  #deliverCommands(): void {
    const { webContents } = this.browserWindow;
    let stop = () => {};
    webContents.on('dom-ready', () => {
      const stopCommands = this.#commands.listen((command) => webContents.send(commandChannel, command));
      const stopLinks = this.#links.listen((target) => webContents.send(linkChannel, target));
      stop = () => {
        stopCommands();
        stopLinks();
      };
    });
    webContents.on('did-start-navigation', ({ isMainFrame, isSameDocument }) => {
      if (isMainFrame && !isSameDocument) stop();
    });
  }

  #saveBounds(): void {
    const window = { ...this.browserWindow.getNormalBounds(), isMaximized: this.browserWindow.isMaximized() };
    void this.#settings.change({ window });
  }

  /** @param address of a screen, such as `#/calls` */
  async open(address = ''): Promise<void> {
    try {
      await this.browserWindow.loadURL(startPage + address);
    } catch (error) {
      // Wait, because Electron reports a crash only after this rejection.
      await setImmediate();
      // Ignores the error if the window was closed or the page has crashed. crash-recovery.ts handles crashes.
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
    this.#commands.push(command);
  }

  /** Opens a link once the page is ready for it. */
  openLink(target: LinkTarget): void {
    this.focus();
    this.#links.push(target);
  }

  get showsSecret(): boolean {
    return this.#showsSecret;
  }

  /** While a secret is visible, the window is hidden from screen capture and asks before it closes. */
  setSecretVisible(isVisible: boolean): void {
    this.#showsSecret = isVisible;
    this.browserWindow.setContentProtection(isVisible);
  }

  confirmServer(host: string): Promise<boolean> {
    return this.#ask(`Connect to ${host}?`, 'You haven’t signed in to this server before.', ['Connect', 'Cancel'], 0);
  }

  /** @returns whether the user has pressed the first button */
  async #ask(message: string, detail: string, buttons: [string, string], defaultId: number): Promise<boolean> {
    const options = { type: 'question', message, detail, buttons, defaultId, cancelId: 1 } as const;
    const { response } = await dialog.showMessageBox(this.browserWindow, options);
    return response === 0;
  }

  async tell(message: string, detail: string): Promise<void> {
    await dialog.showMessageBox(this.browserWindow, { type: 'info', message, detail, buttons: ['OK'] });
  }

  /** Asks where to save a file, and before it replaces another. @returns null if the user cancels */
  async chooseFile(name: string, filters = [{ name: 'CSV', extensions: ['csv'] }]): Promise<string | null> {
    for (let path = join(app.getPath('downloads'), name); ; ) {
      const { canceled, filePath } = await dialog.showSaveDialog(this.browserWindow, { defaultPath: path, filters });
      if (canceled || filePath === '') return null;
      if (!existsSync(filePath) || (await this.#confirmReplace(basename(filePath)))) return filePath;
      path = filePath;
    }
  }

  /** On macOS and Windows, the dialog for saving has already asked. On Linux, some desktops' dialogs don't, whatever Electron requests. */
  async #confirmReplace(name: string): Promise<boolean> {
    if (process.platform !== 'linux') return true;
    const detail = 'The folder already has a file with this name. Its contents will be lost.';
    return this.#ask(`Replace ${name}?`, detail, ['Replace', 'Choose another name'], 1);
  }

  reportProgress(rows: number): void {
    const { browserWindow } = this;
    if (!browserWindow.isDestroyed()) browserWindow.webContents.send(progressChannel, rows);
  }

  close(): void {
    this.#showsSecret = false;
    this.browserWindow.close();
  }
}
