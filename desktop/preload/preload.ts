import { contextBridge, ipcRenderer } from 'electron';
import {
  type Bridge,
  type Capabilities,
  type Command,
  commandChannel,
  functionNames,
  type LinkTarget,
  linkChannel,
  progressChannel,
} from '../ipc.ts';

/** The page gets one function per channel instead of `ipcRenderer`, which could send on any channel. */
const invoke = (channel: string) => (input?: unknown) => ipcRenderer.invoke(channel, input);

const functions = Object.fromEntries(Object.values(functionNames).map((name) => [name, invoke(name)]));

/** The main process receives both arguments as one input. */
const request = (name: unknown, input: unknown) => ipcRenderer.invoke(functionNames.request, { name, input });

const listenTo =
  <Message>(channel: string) =>
  (listener: (message: Message) => void) => {
    const deliver = (_event: unknown, message: Message) => listener(message);
    ipcRenderer.on(channel, deliver);
    return () => {
      ipcRenderer.removeListener(channel, deliver);
    };
  };
const onCommand: Bridge['onCommand'] = listenTo<Command>(commandChannel);
const onLink: Bridge['onLink'] = listenTo<LinkTarget>(linkChannel);
const onExportProgress: Bridge['onExportProgress'] = listenTo<number>(progressChannel);

/** Linux has no way to hide a window from screen capture. */
const hidesSecrets = process.platform !== 'linux';
const capabilities: Capabilities = { choosesServer: true, hasMenu: true, guardsSecrets: true, hidesSecrets, isPrivate: true };
/** Does nothing, because the app has only one window. */
const onSessionChange: Bridge['onSessionChange'] = () => () => undefined;

contextBridge.exposeInMainWorld('callkey', { ...functions, request, capabilities, onCommand, onLink, onExportProgress, onSessionChange });
