import { type CoreClient, coreClient } from './core-client.ts';
import type { Environment, Folders } from './folders.ts';
import { readKey } from './key-store.ts';
import type { Output, Streams } from './output.ts';
import { type Patience, patienceForOne } from './retries.ts';
import { type GlobalOptions, readSettings, type Settings, serverOf } from './settings.ts';

/** What a command works with. */
export type Cli = {
  options: GlobalOptions;
  environment: Environment;
  folders: Folders;
  output: Output;
  streams: Streams & { stdin: NodeJS.ReadStream };
};

export function settingsOf({ options, environment, folders }: Cli): Promise<Settings> {
  return readSettings(options, environment, folders);
}

export type Connection = { server: string; settings: Settings; client: CoreClient };

/** A client for the core that the settings name, with the key that they name. @throws Failure */
export async function connect(
  cli: Cli,
  { patience, connections = 1 }: { patience?: Patience; connections?: number } = {},
): Promise<Connection> {
  const settings = await settingsOf(cli);
  const server = serverOf(settings);
  const keyValue = await readKey(settings, cli.environment, cli.folders);
  const given = patience ?? { ...patienceForOne, onRetry: tellRetries(cli) };
  return { server, settings, client: coreClient({ server, keyValue, patience: given, connections, output: cli.output }) };
}

/** Somebody at a terminal should know what they wait for; a log need not. */
export function tellRetries({ output, streams }: Cli): (reason: string) => void {
  let told = '';
  return (reason) => {
    if (streams.stderr.isTTY && reason !== told) output.note(`Trying again: ${reason}.`);
    told = reason;
  };
}
