import { setImmediate } from 'node:timers/promises';
import { app, BrowserWindow, dialog, type RenderProcessGoneDetails } from 'electron';
import { log } from './log.ts';
import type { SettingsFile } from './settings.ts';
import type { ConsoleWindow } from './window.ts';

type Unsaved = SettingsFile['current']['unsaved'];

/** Says whose secret was on screen, and what to do without it. */
export function describeUnsaved(unsaved: Unsaved): string {
  if (!unsaved) return 'The secret on screen was lost. If you haven’t saved it, create or reset it again.';
  const { kind, name } = unsaved;
  return kind === 'key'
    ? `The value of the API key “${name}” was on screen, and can’t be shown again. If you haven’t saved it, revoke the key and create a new one.`
    : `The one-time password of ${name} was on screen, and can’t be shown again. If you haven’t saved it, reset the user’s password.`;
}

/** Returns the page's address where the user can revoke the key or reset the password. */
function addressOf(unsaved: Unsaved): string {
  return unsaved ? `#/${unsaved.kind === 'key' ? 'api-keys' : 'users'}/${encodeURIComponent(unsaved.id)}` : '';
}

/** If the whole app ended while a secret was on screen, tells the user, and offers to open the key or user. */
export async function reportUnsaved(window: ConsoleWindow, settings: SettingsFile, openAddress: (address: string) => void): Promise<void> {
  const { unsaved, servers } = settings.current;
  if (!unsaved) return;
  await settings.change({ unsaved: null });
  const isHere = unsaved.server === servers[0]?.address;
  const { response } = await dialog.showMessageBox(window.browserWindow, {
    type: 'warning',
    message: `${app.name} ended unexpectedly.`,
    detail: `${describeUnsaved(unsaved)}${isHere ? '' : ` It’s on ${unsaved.server}.`}`,
    buttons: isHere ? ['Show', 'Close'] : ['Close'],
    cancelId: isHere ? 1 : 0,
  });
  if (isHere && response === 0) openAddress(addressOf(unsaved));
}

/** Tells the user when the page crashes or hangs, and offers to reopen it. By default, Electron would leave a blank window. */
export function watchPage(window: ConsoleWindow, settings: SettingsFile, dismissSecret: () => Promise<void>): void {
  const { browserWindow } = window;
  const { webContents } = browserWindow;
  /** Aborting it closes the open dialog. */
  let openQuestion: AbortController | null = null;

  async function ask(message: string, detail: string, buttons: string[]): Promise<number> {
    openQuestion?.abort();
    const question = new AbortController();
    openQuestion = question;
    const options = { type: 'error', message, detail, buttons, defaultId: 0, cancelId: buttons.length, signal: question.signal } as const;
    const { response } = await dialog.showMessageBox(browserWindow, options);
    return question.signal.aborted ? buttons.length : response;
  }

  async function handleCrash({ reason }: RenderProcessGoneDetails): Promise<void> {
    if (reason === 'clean-exit' || browserWindow.isDestroyed()) return;
    log('page crashed', { reason });
    const { unsaved } = settings.current;
    const lost = window.showsSecret ? ` ${describeUnsaved(unsaved)}` : '';
    await dismissSecret();
    const chosen = await ask('The window has stopped working.', `You’re still signed in.${lost}`, ['Reopen', 'Quit']);
    // Wait, because Chromium crashes if a page is loaded while it's still reporting the previous crash.
    await setImmediate();
    if (chosen === 0) await window.open(addressOf(unsaved));
    else app.quit();
  }

  async function handleHang(): Promise<void> {
    const detail = window.showsSecret ? 'If you reopen it, you’ll lose the key value or password on screen.' : '';
    const chosen = await ask('The window isn’t responding.', detail, ['Wait', 'Reopen']);
    // This triggers handleCrash, whose dialog says what was lost.
    if (chosen === 1) webContents.forcefullyCrashRenderer();
  }

  webContents.on('render-process-gone', (_event, details) => void handleCrash(details));
  browserWindow.on('unresponsive', () => void handleHang());
  browserWindow.on('responsive', () => openQuestion?.abort());
}

let hasFailed = false;

/** Tells the user and restarts the app. After an unexpected error, the main process may be in any state. */
export async function restartAfterFailure(error: unknown): Promise<void> {
  if (hasFailed) return;
  hasFailed = true;
  process.stderr.write(`${stackTrace(error)}\n`);
  log('app failed', { stack: stackTrace(error) });
  await app.whenReady();
  const { response } = await dialog.showMessageBox({
    type: 'error',
    message: `${app.name} has run into a problem.`,
    detail: 'Restart it to continue.',
    buttons: ['Restart', 'Quit'],
    defaultId: 0,
    cancelId: 1,
  });
  // An AppImage must be started from its own file, because the mounted executable disappears with this process.
  const { APPIMAGE } = process.env;
  if (response === 0) app.relaunch(APPIMAGE === undefined ? {} : { execPath: APPIMAGE });
  // Destroys each window, because closing it could ask the page first, which might not respond.
  for (const window of BrowserWindow.getAllWindows()) window.destroy();
  app.quit();
}

/** Returns the stack trace without the message, because the message may contain a secret. */
function stackTrace(error: unknown): string {
  if (!(error instanceof Error)) return 'A value that isn’t an Error was thrown.';
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? [];
  return [error.name, ...frames].join('\n');
}
