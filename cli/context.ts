import { type CoreClient, createCoreClient } from './client/core-client.ts';
import { oneCallPolicy, type RetryPolicy } from './client/retries.ts';
import { readKey } from './keys/key-store.ts';
import type { Output, Streams } from './output.ts';
import { type GlobalOptions, readSettings, requireServer, type Settings } from './settings.ts';
import type { Environment, Folders } from './xdg.ts';

/** What every command gets from main.ts. */
export type Context = {
  options: GlobalOptions;
  environment: Environment;
  folders: Folders;
  output: Output;
  streams: Streams & { stdin: NodeJS.ReadStream };
};

export function settingsOf({ options, environment, folders }: Context): Promise<Settings> {
  return readSettings(options, environment, folders);
}

export type Connection = { server: string; settings: Settings; client: CoreClient };

/** A client for the configured server and key. @throws CallkeyError */
export async function connect(
  context: Context,
  { retry, connections = 1 }: { retry?: RetryPolicy; connections?: number } = {},
): Promise<Connection> {
  const settings = await settingsOf(context);
  const server = requireServer(settings);
  const keyValue = await readKey(settings, context.environment, context.folders);
  const policy = retry ?? { ...oneCallPolicy, onRetry: retryNotes(context) };
  return { server, settings, client: createCoreClient({ server, keyValue, retry: policy, connections, trace: context.output.trace }) };
}

/** A user at a terminal should know why the command waits; a log need not. */
export function retryNotes({ output, streams }: Context): (reason: string) => void {
  let noted = '';
  return (reason) => {
    if (streams.stderr.isTTY && reason !== noted) output.note(`Trying again: ${reason}.`);
    noted = reason;
  };
}
