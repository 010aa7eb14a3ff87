import { app, type Session, type WebContents } from 'electron';
import { openLink } from './links.ts';

/** Has to be called before the app is ready. */
export function cutOffFromNetwork(): void {
  // Neither a policy nor a filter of requests sees every look-up, such as those that a page asks for in advance. All that the app
  // asks of a network goes through Node, which this does not touch.
  app.commandLine.appendSwitch('host-resolver-rules', 'MAP * ~NOTFOUND');
  // No fuse closes this door: whoever can open it reads what is in the page.
  if (app.isPackaged) for (const name of ['remote-debugging-port', 'remote-debugging-pipe']) app.commandLine.removeSwitch(name);
}

/** No page but our own, nothing from the network, no permission: whatever a page may ask for. */
export function denyEverythingElse(session: Session): void {
  session.setPermissionRequestHandler((_page, _permission, answer) => answer(false));
  session.setPermissionCheckHandler(() => false);
  session.setDevicePermissionHandler(() => false);
  session.setDisplayMediaRequestHandler((_request, answer) => answer(null));
  const ours = app.isPackaged ? /^app:/ : /^(?:app|devtools):/;
  session.webRequest.onBeforeRequest(({ url }, answer) => answer({ cancel: !ours.test(url) }));
  session.on('will-download', (event) => event.preventDefault());
  // Dictionaries would be fetched from the network.
  session.setSpellCheckerEnabled(false);
  app.on('web-contents-created', (_event, contents) => keepWithin(contents));
}

function keepWithin(contents: WebContents): void {
  contents.on('will-navigate', (event) => event.preventDefault());
  contents.on('will-frame-navigate', (event) => event.preventDefault());
  contents.on('will-redirect', (event) => event.preventDefault());
  contents.on('will-attach-webview', (event) => event.preventDefault());
  contents.setWindowOpenHandler(({ url }) => {
    openLink(url);
    return { action: 'deny' };
  });
  // Peer connections are outside of policies and filters: without this they send to whomever a page names.
  contents.setWebRTCIPHandlingPolicy('disable_non_proxied_udp');
}
