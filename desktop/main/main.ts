import { join } from 'node:path';
import { app, session } from 'electron';
import { registerAppScheme, serveApp } from './app-protocol.ts';
import { createChannels } from './channels.ts';
import { SecretClipboard } from './clipboard.ts';
import { serveChannels } from './ipc-server.ts';
import { KeptSessionFile } from './kept-session.ts';
import { describeApp, installMenu } from './menu.ts';
import { startAnew, watchPage } from './mishaps.ts';
import { cutOffFromNetwork, denyEverythingElse } from './security.ts';
import { SettingsFile } from './settings.ts';
import { ConsoleWindow } from './window.ts';

async function start(): Promise<void> {
  await app.whenReady();
  denyEverythingElse(session.defaultSession);
  serveApp(join(import.meta.dirname, '../renderer'));
  const folder = app.getPath('userData');
  const settings = new SettingsFile(folder);
  const clipboard = new SecretClipboard();
  const window = new ConsoleWindow(settings);
  app.on('second-instance', () => window.focus());
  finishBeforeQuitting(() => Promise.all([clipboard.clear(), settings.change({})]));
  describeApp();
  installMenu((command) => window.send(command));
  watchPage(window);
  const channels = createChannels({ settings, kept: new KeptSessionFile(folder), clipboard, window });
  serveChannels(channels, window.browserWindow.webContents);
  await window.open();
}

/** Quits for good once all is finished. */
function finishBeforeQuitting(finish: () => Promise<unknown>): void {
  let isFinished = false;
  app.on('will-quit', (event) => {
    if (isFinished) return;
    event.preventDefault();
    isFinished = true;
    // Not at once: Electron passes over a second wish to quit while it is still taking back the first.
    void finish().finally(() => setImmediate(() => app.quit()));
  });
}

// Every window asks for the sandbox by itself, too. Electron takes this call as stronger than the switch, and then cannot start as root.
if (!app.commandLine.hasSwitch('no-sandbox')) app.enableSandbox();
cutOffFromNetwork();
registerAppScheme();
for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, (error) => void startAnew(error));
app.on('window-all-closed', () => app.quit());
// The first one shows its window instead.
if (app.requestSingleInstanceLock()) void start();
else app.quit();
