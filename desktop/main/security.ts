import { app, type Session, shell, type WebContents } from 'electron';
import { referenceUrl } from '../server-address.ts';

/** Call this before the app is ready. */
export function blockNetwork(): void {
  // DNS prefetching bypasses the content security policy and the request filter. Requests through Node.js, the app's own, ignore this.
  app.commandLine.appendSwitch('host-resolver-rules', 'MAP * ~NOTFOUND');
  // Remove these switches, because remote debugging can read everything in the page, and no fuse disables it.
  if (app.isPackaged) for (const name of ['remote-debugging-port', 'remote-debugging-pipe']) app.commandLine.removeSwitch(name);
}

/** Denies pages every permission, download and network request. @param currentServer returns the server whose API reference the page may open */
export function restrictSession(session: Session, currentServer: () => string): void {
  session.setPermissionRequestHandler((_page, _permission, answer) => answer(false));
  session.setPermissionCheckHandler(() => false);
  session.setDevicePermissionHandler(() => false);
  session.setDisplayMediaRequestHandler((_request, answer) => answer(null));
  const ownUrl = app.isPackaged ? /^app:/ : /^(?:app|devtools):/;
  session.webRequest.onBeforeRequest(({ url }, answer) => answer({ cancel: !ownUrl.test(url) }));
  session.on('will-download', (event) => event.preventDefault());
  // The spell checker downloads dictionaries.
  session.setSpellCheckerEnabled(false);
  app.on('web-contents-created', (_event, contents) => restrictNavigation(contents, currentServer));
}

function restrictNavigation(contents: WebContents, currentServer: () => string): void {
  contents.on('will-navigate', (event) => event.preventDefault());
  contents.on('will-frame-navigate', (event) => event.preventDefault());
  contents.on('will-redirect', (event) => event.preventDefault());
  contents.on('will-attach-webview', (event) => event.preventDefault());
  contents.setWindowOpenHandler(({ url }) => {
    openLink(url, currentServer());
    return { action: 'deny' };
  });
  // WebRTC bypasses both the content security policy and the request filter.
  contents.setWebRTCIPHandlingPolicy('disable_non_proxied_udp');
}

/** The only addresses that the console opens in the browser. */
export const links = {
  timeZones: 'https://www.iana.org/time-zones',
  keepingSecrets: 'https://cheatsheetseries.owasp.org/cheatsheets/Secrets_Management_Cheat_Sheet.html',
} as const;

const allowed: ReadonlySet<string> = new Set(Object.values(links));

/** Opens a listed link, or the current server's reference, in the browser. Any other URL could start another program. */
export function openLink(url: string, server = ''): void {
  if (allowed.has(url) || (server !== '' && url === referenceUrl(server))) void shell.openExternal(url).catch(() => undefined);
}
