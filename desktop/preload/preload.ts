import { contextBridge, ipcRenderer } from 'electron';
import { type Bridge, type Command, channelNames, commandChannel } from '../ipc.ts';

/** Named functions and nothing else: the page never gets hold of a channel. */
const invoke = (channel: string) => (input?: unknown) => ipcRenderer.invoke(channel, input);

const functions = Object.fromEntries(Object.values(channelNames).map((name) => [name, invoke(name)]));

const onCommand: Bridge['onCommand'] = (listener) => {
  const hear = (_event: unknown, command: Command) => listener(command);
  ipcRenderer.on(commandChannel, hear);
  return () => ipcRenderer.removeListener(commandChannel, hear);
};

contextBridge.exposeInMainWorld('callkey', { ...functions, onCommand });
