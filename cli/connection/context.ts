import type { Readable } from 'node:stream';
import type { CallkeyClient } from '../client/callkey-client.ts';
import { type CallkeyError, usageError } from '../client/errors.ts';
import type { Timing } from '../client/timing.ts';
import type { ClientOptions } from '../client/types.ts';
import { type Output, type Streams, toFailure } from '../terminal/output.ts';
import { keySetCommand, readKey } from './keys.ts';
import { checkedServer, readSettings, requireServer, resolveCampaign, type Settings, type SettingsSource } from './settings.ts';

/** Runs a command with its context. The context is loaded only then, so that help doesn't wait for it. */
export type WithContext = (work: (context: Context) => Promise<void>) => Promise<void>;

type Surroundings = SettingsSource & {
  output: Output;
  streams: Streams & { stdin: Readable & { isTTY?: boolean } };
  version: string;
  timing: Timing;
};

/** Whose key a command uses at which server. */
export type Connection = { server: string; settings: Settings; client: CallkeyClient };

/** What every command receives from main.ts. */
export type Context = ReturnType<typeof createContext>;

export function createContext(surroundings: Surroundings) {
  const { options, environment, folders, output, streams, version, timing } = surroundings;
  const settings = () => readSettings(surroundings);
  /** Tells users at a terminal why the command is waiting. Doesn't write to a log, which doesn't need this. */
  const retryNotes = () => {
    let noted = '';
    return (reason: string) => {
      if (streams.stderr.isTTY && reason !== noted) output.note(`Retrying: ${reason}.`);
      noted = reason;
    };
  };
  return {
    ...surroundings,
    settings,
    retryNotes,
    /** @param campaign an ID or an alias; undefined means CALLKEY_CAMPAIGN @throws CallkeyError `usage` */
    campaignId: (campaign: string | undefined) => resolveCampaign(surroundings, campaign),
    /** Creates a client for the configured server and key. @throws CallkeyError */
    async connect(clientOptions: Pick<ClientOptions, 'retry' | 'connections' | 'onAnswer'> = {}): Promise<Connection> {
      const found = await settings();
      const server = requireServer(found);
      const { profileName } = found;
      const { keyValue, where, variable } = await readKey(found, environment, folders);
      const chosenBy = options.profile !== undefined ? '--profile' : environment['CALLKEY_PROFILE'] && 'CALLKEY_PROFILE';
      const stored = `for the profile ${profileName}${chosenBy ? ` (from ${chosenBy})` : ''}. To replace it, run ${keySetCommand(profileName)}.`;
      const keySource = `It's ${where}${variable === undefined ? `, ${stored}` : `. To use a stored key, unset ${variable}.`}`;
      const { CallkeyClient } = await import('../client/callkey-client.ts');
      const allOptions = {
        retry: { onRetry: retryNotes() },
        connections: 1,
        ...(options.timeout === undefined ? {} : { timeout: options.timeout * 1_000 }),
        ...clientOptions,
        ...{ server, keyValue, keySource, trace: output.trace },
        userAgent: `callkey/${version} node/${process.versions.node} ${process.platform}`,
        onKeyEndsSoon: keyExpiryWarner(output, profileName),
      };
      const client = new CallkeyClient(allOptions, timing);
      return { server, settings: found, client };
    },
    /** Fails a command whose output already says what's wrong. With --json, still reports the error in the usual place. */
    endWith(error: CallkeyError): void {
      const failure = toFailure(error);
      process.exitCode = failure.exitCode;
      if (output.json) output.error(failure);
    },
  };
}

/** Returns the context of a command that continues a run: with its server and profile. @throws CallkeyError `usage` */
export function contextOfRun(context: Context, { server, profile }: { server: string; profile: string }): Context {
  const { options } = context;
  if (options.server !== undefined && checkedServer(options.server) !== server)
    throw usageError(`That run used the server ${server}. Remove --server.`);
  return createContext({ ...context, options: { ...options, server, profile: options.profile ?? profile } });
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
