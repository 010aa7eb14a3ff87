import { CallkeyClient } from './client/callkey-client.ts';
import type { CallkeyError } from './client/errors.ts';
import type { ClientOptions } from './client/types.ts';
import { exitCodes, toFailure } from './exit-codes.ts';
import { keySetCommand, readKey } from './keys/read-key.ts';
import { type GlobalOptions, readSettings, requireServer, type Settings } from './settings.ts';
import type { Environment, Folders } from './state/xdg.ts';
import type { Output, Streams } from './terminal/output.ts';

/** What every command receives from main.ts. */
export type Context = {
  options: GlobalOptions;
  environment: Environment;
  folders: Folders;
  output: Output;
  streams: Streams & { stdin: NodeJS.ReadStream };
  version: string;
};

export function loadSettings({ options, environment, folders }: Context): Promise<Settings> {
  return readSettings(options, environment, folders);
}

/** Fails a command whose output already says what's wrong. With --json, still reports the error in the usual place. */
export function endWith({ output }: Context, error: CallkeyError): void {
  process.exitCode = exitCodes[error.kind];
  if (output.json) output.error(toFailure(error));
}

export type Connection = { server: string; settings: Settings; client: CallkeyClient };

/** Creates a client for the configured server and key. @throws CallkeyError */
export async function connect(
  context: Context,
  options: Pick<ClientOptions, 'retry' | 'connections' | 'onAnswer'> = {},
): Promise<Connection> {
  const settings = await loadSettings(context);
  const server = requireServer(settings);
  const keyValue = await readKey(settings, context.environment, context.folders);
  const client = new CallkeyClient({
    retry: { onRetry: retryNotes(context) },
    connections: 1,
    ...(context.options.timeout === undefined ? {} : { timeout: context.options.timeout * 1_000 }),
    ...options,
    server,
    keyValue,
    userAgent: `callkey/${context.version} node/${process.versions.node} ${process.platform}`,
    trace: context.output.trace,
    onKeyEndsSoon: keyExpiryWarner(context.output, settings.profileName),
  });
  return { server, settings, client };
}

/** Warns once per run that the key will expire. Also warns programs, so that operators see the warning in the log in time. */
function keyExpiryWarner(output: Output, profileName: string): (expiresAt: string) => void {
  let isSaid = false;
  return (expiresAt) => {
    if (isSaid || Number.isNaN(Date.parse(expiresAt))) return;
    isSaid = true;
    const days = Math.max(0, Math.floor((Date.parse(expiresAt) - Date.now()) / 86_400_000));
    const left = days === 0 ? 'in less than a day' : `in ${days} ${days === 1 ? 'day' : 'days'}`;
    output.note(
      `The API key expires ${left}, at ${expiresAt}. Create a replacement in the console, then store it with ${keySetCommand(profileName)}.`,
    );
  };
}

/** Tells users at a terminal why the command is waiting. Doesn't write to a log, which doesn't need this. */
export function retryNotes({ output, streams }: Context): (reason: string) => void {
  let noted = '';
  return (reason) => {
    if (streams.stderr.isTTY && reason !== noted) output.note(`Retrying: ${reason}.`);
    noted = reason;
  };
}
