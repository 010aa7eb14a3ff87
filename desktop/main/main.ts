import { join } from 'node:path';
import { app, session } from 'electron';
import { restoreTlsChecks } from '#contract/tls-checks.ts';
import type { Channels } from '../ipc.ts';
import { linkScheme } from '../server-address.ts';
import { registerAppScheme, serveApp } from './app-protocol.ts';
import { createChannels } from './channels.ts';
import { SecretClipboard } from './clipboard.ts';
import { reportUnsaved, restartAfterFailure, watchPage } from './crash-recovery.ts';
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
  watchPage(window, settings, channels.dismissSecret);
  followLinks(window, channels.readLink);
  finishBeforeQuitting(() => Promise.all([clipboard.clear(), settings.change({})]));
  setAboutPanel();
  installMenu({ send: (command) => window.send(command) });
  await opened;
  await reportUnsaved(window, settings, (address) => window.openLink({ server: settings.current.servers[0]?.address ?? '', address }));
}

/** Opens the links that the system hands over: as an argument of this start or of another one, or on macOS as an event. */
function followLinks(window: ConsoleWindow, readLink: Channels['readLink']): void {
  const open = async (link: string | undefined) => {
    window.focus();
    const target = link === undefined ? null : await readLink(link.slice(0, maxLinkLength));
    if (target?.ok) window.openLink(target.value);
  };
  const find = (args: readonly string[]) => args.find((argument) => argument.startsWith(`${linkScheme}://`));
  app.on('second-instance', (_event, args) => void open(find(args)));
  onUrl = (url) => void open(url);
  const first = earlyUrl ?? find(process.argv);
  if (first !== undefined) void open(first);
  // The packages for Linux and macOS register the scheme themselves.
  if (app.isPackaged && process.platform === 'win32') app.setAsDefaultProtocolClient(linkScheme);
}

const maxLinkLength = 10_000;
/** macOS may send the event before the app is ready. */
let earlyUrl: string | undefined;
let onUrl = (url: string): void => {
  earlyUrl = url;
};

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
app.on('open-url', (event, url) => {
  event.preventDefault();
  onUrl(url);
});
app.on('window-all-closed', () => app.quit());
// If another instance has the lock, it shows its window, and this one quits.
if (app.requestSingleInstanceLock()) void start();
else app.quit();
