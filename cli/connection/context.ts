import type { CallkeyClient } from '../client/callkey-client.ts';
import { CallkeyError } from '../client/errors.ts';
import type { ClientOptions } from '../client/types.ts';
import type { Environment, Folders } from '../state/folders.ts';
import { exitCodes, type Output, type Streams, toFailure } from '../terminal/output.ts';
import { keySetCommand, readKey } from './keys.ts';
import { checkedServer, type GlobalOptions, readSettings, requireServer, resolveCampaign, type Settings } from './settings.ts';

/** Runs a command with its context. The context is loaded only then, so that help doesn't wait for it. */
export type RunAction = (work: (context: Context) => Promise<void>) => Promise<void>;

type Surroundings = {
  options: GlobalOptions;
  environment: Environment;
  folders: Folders;
  output: Output;
  streams: Streams & { stdin: NodeJS.ReadStream };
  version: string;
};

/** Whose key a command uses at which server. */
export type Connection = { server: string; settings: Settings; client: CallkeyClient };

/** What every command receives from main.ts. */
export class Context implements Surroundings {
  readonly options: GlobalOptions;
  readonly environment: Environment;
  readonly folders: Folders;
  readonly output: Output;
  readonly streams: Surroundings['streams'];
  readonly version: string;

  constructor({ options, environment, folders, output, streams, version }: Surroundings) {
    this.options = options;
    this.environment = environment;
    this.folders = folders;
    this.output = output;
    this.streams = streams;
    this.version = version;
  }

  settings(): Promise<Settings> {
    return readSettings(this);
  }

  /** @param campaign an ID or an alias; undefined means CALLKEY_CAMPAIGN @throws CallkeyError `usage` */
  campaignId(campaign: string | undefined): Promise<string> {
    return resolveCampaign(this, campaign);
  }

  /** Creates a client for the configured server and key. @throws CallkeyError */
  async connect(options: Pick<ClientOptions, 'retry' | 'connections' | 'onAnswer'> = {}): Promise<Connection> {
    const settings = await this.settings();
    const server = requireServer(settings);
    const { keyValue, where, variable } = await readKey(settings, this.environment, this.folders);
    const { profileName } = settings;
    const chosenBy = this.options.profile !== undefined ? '--profile' : this.environment['CALLKEY_PROFILE'] && 'CALLKEY_PROFILE';
    const stored = `for the profile ${profileName}${chosenBy ? ` (from ${chosenBy})` : ''}. To replace it, run ${keySetCommand(profileName)}.`;
    const keySource = `It's ${where}${variable === undefined ? `, ${stored}` : `. To use a stored key, unset ${variable}.`}`;
    const { CallkeyClient } = await import('../client/callkey-client.ts');
    const client = new CallkeyClient({
      retry: { onRetry: this.retryNotes() },
      connections: 1,
      ...(this.options.timeout === undefined ? {} : { timeout: this.options.timeout * 1_000 }),
      ...options,
      ...{ server, keyValue, keySource },
      userAgent: `callkey/${this.version} node/${process.versions.node} ${process.platform}`,
      trace: this.output.trace,
      onKeyEndsSoon: keyExpiryWarner(this.output, profileName),
    });
    return { server, settings, client };
  }

  /** Returns the context of a command that continues a run: with its server and profile. @throws CallkeyError `usage` */
  forRun({ server, profile }: { server: string; profile: string }): Context {
    const { options } = this;
    if (options.server !== undefined && checkedServer(options.server) !== server)
      throw new CallkeyError('usage', `That run used the server ${server}. Remove --server.`);
    return new Context({ ...this, options: { ...options, server, profile: options.profile ?? profile } });
  }

  /** Tells users at a terminal why the command is waiting. Doesn't write to a log, which doesn't need this. */
  retryNotes(): (reason: string) => void {
    let noted = '';
    return (reason) => {
      if (this.streams.stderr.isTTY && reason !== noted) this.output.note(`Retrying: ${reason}.`);
      noted = reason;
    };
  }

  /** Fails a command whose output already says what's wrong. With --json, still reports the error in the usual place. */
  endWith(error: CallkeyError): void {
    process.exitCode = exitCodes[error.kind];
    if (this.output.json) this.output.error(toFailure(error));
  }
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
