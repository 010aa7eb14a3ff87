import { join } from 'node:path';
import { app, session } from 'electron';
import { registerAppScheme, serveApp } from './app-protocol.ts';
import { createChannels } from './channels.ts';
import { SecretClipboard } from './clipboard.ts';
import { serveChannels } from './ipc-server.ts';
import { KeptSessionFile } from './kept-session.ts';
import { denyEverythingElse } from './security.ts';
import { SettingsFile } from './settings.ts';
import { ConsoleWindow } from './window.ts';

// Every window asks for the sandbox by itself, too. Electron takes this call as stronger than the switch, and then cannot start as root.
if (!app.commandLine.hasSwitch('no-sandbox')) app.enableSandbox();
registerAppScheme();

async function start(): Promise<void> {
  await app.whenReady();
  denyEverythingElse(session.defaultSession);
  serveApp(join(import.meta.dirname, '../renderer'));
  const folder = app.getPath('userData');
  const clipboard = new SecretClipboard();
  app.on('will-quit', (event) => {
    if (!clipboard.holdsSecret) return;
    event.preventDefault();
    // Not at once: Electron passes over a second wish to quit while it is still taking back the first.
    clipboard.clear().finally(() => setImmediate(() => app.quit()));
  });
  const window = new ConsoleWindow();
  const channels = createChannels({ settings: new SettingsFile(folder), kept: new KeptSessionFile(folder), clipboard, window });
  serveChannels(channels, window.browserWindow.webContents);
  await window.open();
}

app.on('window-all-closed', () => app.quit());
// Not awaited here: Electron is not ready before this module has been read to its end.
void start();
