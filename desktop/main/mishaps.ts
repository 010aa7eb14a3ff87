import { setImmediate } from 'node:timers/promises';
import { app, BrowserWindow, dialog, type RenderProcessGoneDetails } from 'electron';
import type { ConsoleWindow } from './window.ts';

const lostKeyValue = ' The key value that was showing is gone. Revoke that key, and create another.';

/** Says when the page has crashed or hangs, and starts it anew. Otherwise a dead window would be all that there is to see. */
export function watchPage(window: ConsoleWindow): void {
  const { browserWindow } = window;
  const { webContents } = browserWindow;
  /** While a question is open: what closes it by itself. */
  let asking: AbortController | null = null;

  async function ask(message: string, detail: string, buttons: string[]): Promise<number> {
    asking?.abort();
    const question = new AbortController();
    asking = question;
    const options = { type: 'error', message, detail, buttons, defaultId: 0, cancelId: buttons.length, signal: question.signal } as const;
    const { response } = await dialog.showMessageBox(browserWindow, options);
    return question.signal.aborted ? buttons.length : response;
  }

  async function afterCrash({ reason }: RenderProcessGoneDetails): Promise<void> {
    if (reason === 'clean-exit' || browserWindow.isDestroyed()) return;
    const lost = window.showsKeyValue ? lostKeyValue : '';
    // Nobody is left who could say that it is gone.
    window.guardKeyValue(false);
    const chosen = await ask('The window has stopped working.', `You stay signed in.${lost}`, ['Open Again', 'Quit']);
    // Chromium crashes as a whole when a page is loaded while it is still telling that the last one is gone.
    await setImmediate();
    if (chosen === 0) await window.open();
    else app.quit();
  }

  async function whileHanging(): Promise<void> {
    const detail = window.showsKeyValue ? 'If it is opened again, the key value that is showing is lost.' : '';
    const chosen = await ask('The window does not respond.', detail, ['Wait', 'Open Again']);
    // Ends the page's process, and with that comes to the other question, which says what is lost.
    if (chosen === 1) webContents.forcefullyCrashRenderer();
  }

  webContents.on('render-process-gone', (_event, details) => void afterCrash(details));
  browserWindow.on('unresponsive', () => void whileHanging());
  browserWindow.on('responsive', () => asking?.abort());
}

let hasFailed = false;

/** Where the main process itself fails, it says so and starts anew: nobody knows what state it is in. */
export async function startAnew(error: unknown): Promise<void> {
  if (hasFailed) return;
  hasFailed = true;
  process.stderr.write(`${traceOf(error)}\n`);
  await app.whenReady();
  const { response } = await dialog.showMessageBox({
    type: 'error',
    message: `${app.name} has run into a problem.`,
    detail: 'It has to be started again.',
    buttons: ['Start Again', 'Quit'],
    defaultId: 0,
    cancelId: 1,
  });
  // An AppImage is started by the file that it came in: what is mounted from it ends with the process.
  const { APPIMAGE } = process.env;
  if (response === 0) app.relaunch(APPIMAGE === undefined ? {} : { execPath: APPIMAGE });
  // Without asking the page, as closing does.
  for (const window of BrowserWindow.getAllWindows()) window.destroy();
  app.quit();
}

/** Where it happened. Not the message, which may quote what was being read, and that may be secret. */
function traceOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Something was thrown that is no error.';
  const places = error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? [];
  return [error.name, ...places].join('\n');
}
