import { join } from 'node:path';
import { app, session } from 'electron';
import { restoreTlsChecks } from '#contract/tls-checks.ts';
import { registerAppScheme, serveApp } from './app-protocol.ts';
import { createChannels } from './channels.ts';
import { SecretClipboard } from './clipboard.ts';
import { restartAfterFailure, watchPage } from './crash-recovery.ts';
import { serveChannels } from './ipc-server.ts';
import { enableCommands, installMenu, setAboutPanel } from './menu.ts';
import { blockNetwork, restrictSession } from './security.ts';
import { SessionStore } from './session-store.ts';
import { SettingsFile } from './settings.ts';
import { ConsoleWindow } from './window.ts';

async function start(): Promise<void> {
  await app.whenReady();
  serveApp(join(import.meta.dirname, '../renderer'));
  const folder = app.getPath('userData');
  const settings = new SettingsFile(folder);
  restrictSession(session.defaultSession, () => settings.current.servers[0]?.address ?? '');
  const clipboard = new SecretClipboard();
  const sessionStore = new SessionStore(folder);
  const window = new ConsoleWindow(settings);
  const channels = createChannels({ settings, sessionStore, clipboard, window, enableCommands });
  serveChannels(channels, window.browserWindow.webContents);
  // The page loads in its own process while this one does the rest.
  const opened = window.open();
  watchPage(window, channels.dismissSecret);
  app.on('second-instance', () => window.focus());
  finishBeforeQuitting(() => Promise.all([clipboard.clear(), settings.change({})]));
  setAboutPanel();
  installMenu({ send: (command) => window.send(command) });
  await opened;
}

/** Delays quitting until the work is done. */
function finishBeforeQuitting(finish: () => Promise<unknown>): void {
  let isFinished = false;
  app.on('will-quit', (event) => {
    if (isFinished) return;
    event.preventDefault();
    isFinished = true;
    // Electron ignores another call of quit while it's still cancelling the first one.
    void finish().finally(() => setImmediate(() => app.quit()));
  });
}

restoreTlsChecks(process.env);
// Every window requests the sandbox anyway. Root can start Electron only with `--no-sandbox`, which Electron would ignore after this call.
if (!app.commandLine.hasSwitch('no-sandbox')) app.enableSandbox();
blockNetwork();
registerAppScheme();
for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, (error) => void restartAfterFailure(error));
app.on('window-all-closed', () => app.quit());
// If another instance has the lock, it shows its window, and this one quits.
if (app.requestSingleInstanceLock()) void start();
else app.quit();
