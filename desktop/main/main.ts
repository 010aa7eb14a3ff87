import { release } from 'node:os';
import { join } from 'node:path';
import { app, dialog, Notification, powerMonitor, session } from 'electron';
import { restoreTlsChecks } from '#contract/tls-checks.ts';
import { coreRequest } from '../core-requests.ts';
import type { BridgeFunctions } from '../ipc.ts';
import { linkScheme } from '../server-address.ts';
import { registerAppScheme, serveApp } from './app-protocol.ts';
import { type BridgeDeps, createBridge } from './bridge.ts';
import { SecretClipboard } from './clipboard.ts';
import { describeUnsaved, reportUnsaved, restartAfterFailure, watchPage } from './crash-recovery.ts';
import { notifyOfExpiry } from './expiry-notices.ts';
import { serveBridge } from './ipc-server.ts';
import { log, openLog, readLog } from './log.ts';
import { enableCommands, installMenu, setAboutPanel } from './menu.ts';
import { blockNetwork, restrictSession } from './security.ts';
import { ServerSessions } from './server-sessions.ts';
import { SessionStore } from './session-store.ts';
import { type ManagedSettings, managedPaths, readManagedSettings, SettingsFile } from './settings.ts';
import { ConsoleWindow } from './window.ts';

async function start(): Promise<void> {
  await app.whenReady();
  serveApp(join(import.meta.dirname, '../renderer'));
  const managed = readManaged();
  if (!managed) return app.exit(1);
  const folder = app.getPath('userData');
  const logPath = openLog(folder);
  log('started', { version: app.getVersion(), electron: process.versions.electron, system: `${process.platform} ${release()}` });
  const settings = new SettingsFile(folder);
  restrictSession(session.defaultSession, () => settings.current.servers[0]?.address ?? '');
  const clipboard = new SecretClipboard();
  const sessionStore = new SessionStore(folder, managed.keepSignedIn);
  const servers = new ServerSessions(settings, sessionStore);
  const window = new ConsoleWindow(settings);
  const parts = { settings, servers, managed, appVersion: app.getVersion(), sessionStore, clipboard, window, enableCommands };
  const bridge = createBridge(parts);
  serveBridge(bridge, window.browserWindow.webContents);
  // The page loads in its own process while this one does the rest.
  const opened = window.open();
  watchPage(window, settings, bridge.dismissSecret);
  followLinks(window, bridge.readLink);
  finishBeforeQuitting(() => Promise.all([clipboard.clear(), settings.change({})]));
  setAboutPanel();
  const copyDiagnostics = async () => {
    await clipboard.copyText(describeApp(parts));
    await window.tell('Diagnostics copied', `They contain versions, server addresses, and the last lines of ${logPath}, but no secrets.`);
  };
  installMenu({ send: (command) => window.send(command), settings, copyDiagnostics: () => void copyDiagnostics() });
  watchComputer(parts, bridge.cancelSignIn);
  await opened;
  await reportUnsaved(window, settings, (address) => window.openLink({ server: settings.current.servers[0]?.address ?? '', address }));
}

type Parts = BridgeDeps & { window: ConsoleWindow };

function watchComputer({ window, settings, servers, clipboard, managed }: Parts, cancelSignIn: BridgeFunctions['cancelSignIn']): void {
  // While the computer sleeps, the clipboard's minute doesn't pass.
  powerMonitor.on('suspend', () => void clipboard.clear());
  powerMonitor.on('resume', () => void clipboard.clear());
  powerMonitor.on('lock-screen', () => void clipboard.clear());
  const { signOutAfterMinutes = Number.POSITIVE_INFINITY } = managed;
  setInterval(() => {
    if (powerMonitor.getSystemIdleTime() < signOutAfterMinutes * 60) return;
    void cancelSignIn();
    if (!servers.list().some(({ isSignedIn }) => isSignedIn)) return;
    const lost = window.showsSecret ? describeUnsaved(settings.current.unsaved) : null;
    window.send('lock');
    void Promise.all([servers.endAll(), clipboard.clear(), lost && window.tell('You were signed out', lost)]);
  }, idleCheckMs).unref();
  const listKeys = async () => {
    const { client } = servers;
    // While no one uses the computer, requests would keep the session alive.
    if (!client || powerMonitor.getSystemIdleTime() > 600) return null;
    const listed = await client.send(coreRequest('listApiKeys', {}));
    return listed.ok ? { server: client.server, apiKeys: listed.value.apiKeys } : null;
  };
  const notices = new Set<Notification>();
  const show = ({ server, ...text }: { title: string; body: string; server: string }) => {
    const notification = new Notification(text);
    // Electron drops the click of a notification that nothing refers to anymore.
    notices.add(notification);
    notification.on('click', () => window.openLink({ server, address: '#/api-keys' }));
    notification.on('close', () => notices.delete(notification));
    notification.show();
  };
  setInterval(() => void notifyOfExpiry({ settings, listKeys, show }, Date.now()), noticeCheckMs).unref();
}

const idleCheckMs = 10_000;
const noticeCheckMs = 15 * 60_000;

/** Describes the app and its surroundings for a report to its operator. */
function describeApp({ servers, sessionStore, managed }: Parts): string {
  const { electron, chrome } = process.versions;
  const { persistence } = sessionStore;
  const { XDG_CURRENT_DESKTOP, XDG_SESSION_TYPE } = process.env;
  return [
    `${app.name} ${app.getVersion()}, Electron ${electron}, Chromium ${chrome}${app.isPackaged ? '' : ', from source'}`,
    `System: ${[process.platform, release(), process.arch, XDG_CURRENT_DESKTOP, XDG_SESSION_TYPE].filter(Boolean).join(' ')}`,
    `Keep me signed in: ${persistence.possible ? 'possible' : persistence.reason}`,
    `Administrator's settings: ${JSON.stringify(managed)}`,
    ...servers.list().map(({ address, isSignedIn }) => `Server: ${address}, ${isSignedIn ? 'signed in' : 'signed out'}`),
    '',
    readLog(loggedLines),
  ].join('\n');
}

const loggedLines = 100;

/** Opens the links that the system hands over: as an argument of this start or of another one, or on macOS as an event. */
function followLinks(window: ConsoleWindow, readLink: BridgeFunctions['readLink']): void {
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

/** @returns null if they're invalid, after telling the user */
function readManaged(): ManagedSettings | null {
  try {
    return readManagedSettings(managedPaths(process.platform, process.env));
  } catch (error) {
    const reason = error instanceof Error ? error.message : '';
    process.stderr.write(`${reason}\n`);
    dialog.showErrorBox('Callkey can’t start', `The settings from your administrator can’t be used. ${reason}`);
    return null;
  }
}

function finishBeforeQuitting(finish: () => Promise<unknown>): void {
  let isFinished = false;
  app.on('will-quit', (event) => {
    if (isFinished) return;
    event.preventDefault();
    isFinished = true;
    // Electron ignores another call of quit while it cancels the first one, and crashes if a clipboard is read while a window is destroyed.
    setImmediate(() => void finish().finally(() => app.quit()));
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
