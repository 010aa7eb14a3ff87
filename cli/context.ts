import { type CoreClient, createCoreClient } from './client/core-client.ts';
import { oneCallPolicy, type RetryPolicy } from './client/retries.ts';
import { readKey } from './keys/key-store.ts';
import type { Output, Streams } from './output.ts';
import { type GlobalOptions, readSettings, type Settings, serverOf } from './settings.ts';
import type { Environment, Folders } from './xdg.ts';

/** What a command works with. */
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

/** A client for the core that the settings name, with the key that they name. @throws Failure */
export async function connect(
  context: Context,
  { patience, connections = 1 }: { patience?: RetryPolicy; connections?: number } = {},
): Promise<Connection> {
  const settings = await settingsOf(context);
  const server = serverOf(settings);
  const keyValue = await readKey(settings, context.environment, context.folders);
  const given = patience ?? { ...oneCallPolicy, onRetry: tellRetries(context) };
  return { server, settings, client: createCoreClient({ server, keyValue, patience: given, connections, output: context.output }) };
}

/** Somebody at a terminal should know what they wait for; a log need not. */
export function tellRetries({ output, streams }: Context): (reason: string) => void {
  let told = '';
  return (reason) => {
    if (streams.stderr.isTTY && reason !== told) output.note(`Trying again: ${reason}.`);
    told = reason;
  };
}
