import { ipcMain, type WebContents } from 'electron';
import { type Channels, channelNames } from '../ipc.ts';
import { appOrigin } from './app-protocol.ts';
import { inputs } from './inputs.ts';

type Handler = (input: unknown) => Promise<unknown>;

/**
 * Serves the channels to the page of the app, and to nothing else.
 *
 * @param page whose top frame alone may call
 */
export function serveChannels(channels: Channels, page: WebContents): void {
  for (const name of Object.values(channelNames)) {
    const handler = channels[name] as Handler;
    ipcMain.handle(name, async (event, input: unknown) => {
      if (!isOurPage(event.senderFrame, page)) throw new Error('This frame may not call.');
      const parsed = inputs[name].safeParse(input);
      // Not what was sent: it may be secret.
      if (!parsed.success) throw new Error(`The input of ${name} has the wrong shape.`);
      return handler(parsed.data);
    });
  }
}

/** The origin of a URL with a scheme of our own is the string `null`: so its parts are compared. */
function isOurPage(frame: Electron.WebFrameMain | null, page: WebContents): boolean {
  if (!frame || frame.parent !== null || frame !== page.mainFrame) return false;
  const url = URL.parse(frame.url);
  return url !== null && `${url.protocol}//${url.host}` === appOrigin;
}
