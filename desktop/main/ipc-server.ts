import { ipcMain, type WebContents } from 'electron';
import { type BridgeFunctions, functionNames } from '../ipc.ts';
import { appOrigin } from './app-protocol.ts';
import { inputSchemas, type Request } from './input-schemas.ts';

type Handler = (input: unknown) => Promise<unknown>;

/**
 * Serves the bridge only to the app's page.
 *
 * @param page only its top frame is allowed to call
 */
export function serveBridge(bridge: BridgeFunctions, page: WebContents): void {
  const handlers = { ...bridge, request: ({ name, input }: Request) => bridge.request(name, input) };
  for (const name of Object.values(functionNames)) {
    const handler = handlers[name] as Handler;
    ipcMain.handle(name, async (event, input: unknown) => {
      if (!isOurPage(event.senderFrame, page)) throw new Error('This frame isn’t allowed to make calls.');
      const parsed = inputSchemas[name].safeParse(input);
      // The message doesn't include the input, because the input may be secret.
      if (!parsed.success) throw new Error(`Invalid input for ${name}.`);
      return handler(parsed.data);
    });
  }
}

/** Whether a frame is the console's page. Compares parts of the URL, because the `origin` of a custom scheme is the string "null". */
function isOurPage(frame: Electron.WebFrameMain | null, page: WebContents): boolean {
  if (!frame || frame.parent !== null || frame !== page.mainFrame) return false;
  const url = URL.parse(frame.url);
  return url !== null && `${url.protocol}//${url.host}` === appOrigin;
}
