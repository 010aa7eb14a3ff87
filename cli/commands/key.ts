import { createInterface } from 'node:readline';
import { type Readable, Writable } from 'node:stream';
import type { Command } from 'commander';
import { findKeyValues } from '#contract/key-value.ts';
import { CallkeyError, usageError } from '../client/errors.ts';
import type { Context, WithContext } from '../connection/context.ts';
import type { KeyLocation, Settings } from '../connection/settings.ts';
import { examples } from '../terminal/help.ts';
import { Interrupted } from '../terminal/interrupt.ts';

// Loaded when a command runs, because help doesn't need them.
const loadKeys = () => import('../connection/keys.ts');
const loadSettings = () => import('../connection/settings.ts');

type SetOptions = { insecureStorage?: true };

export function addKey(program: Command, withContext: WithContext): void {
  const key = program.command('key').description('manage the API key used to place calls');
  key
    .command('set')
    .argument('[words...]')
    .usage('[options]')
    .option('--insecure-storage', "store the key in a file that only you can read, instead of in the system's keychain")
    .description('store a key and its server; reads the key from a hidden prompt or from standard input')
    .addHelpText('after', examples('callkey key set --server https://calls.example.com', 'callkey key set --profile staging < key.txt'))
    .action((words: string[], options: SetOptions) => withContext((context) => setKey(context, words, options)));
  key
    .command('status')
    .description('show which key the next command uses and where it is stored, but never the key itself')
    .action(() => withContext(showStatus));
  key
    .command('forget')
    .description('delete the stored key from this machine (it keeps working until you revoke it in the console)')
    .action(() => withContext(forgetKey));
}

/** Stores a profile's key and server. */
async function setKey(context: Context, words: readonly string[], { insecureStorage }: SetOptions): Promise<void> {
  if (words.length > 0) throw keyOnCommandLineError();
  const [{ checkedKey, openKeyStore }, { changeProfiles, requireServer }] = await Promise.all([loadKeys(), loadSettings()]);
  const settings = await context.settings();
  const server = requireServer(settings);
  const { profileName: profile } = settings;
  const place: KeyLocation = insecureStorage ? 'file' : 'keychain';
  // The store is opened before the prompt, so that users don't enter a key that can't be stored.
  const store = await openKeyStore(place, profile, server, context.folders);
  const keyValue = checkedKey(await readKeyInput(context), 'The text you entered');

  await store.write(keyValue);
  // From here on, commands use the new key. If this command stops earlier, they use the old key and server.
  await changeProfiles(context, (profiles) => profiles.set(profile, { server, key: place }));
  await deleteOldKey(context, settings, store.id);
  context.output.answer(
    { profile, server, stored: place },
    `Stored the key for the profile ${profile} in ${store.where}.\n${formatServer(server)}`,
  );
}

/** The error for a key in an argument: as a profile name, it would be written to a file, and as a campaign ID, it would be sent in a URL. */
export function keyOnCommandLineError(): CallkeyError {
  return usageError(
    "Don't pass a key on the command line: every user of this machine can see it there (ps), and the shell saves it in its history. " +
      'Run callkey key set and paste the key at the prompt, or run callkey key set < FILE.\n' +
      'If that was a real key, others may have seen it: revoke it in the console and create a new one.',
  );
}

/** Deletes the old key if it was elsewhere, where no one would notice it. @param newPlace where nothing is deleted */
async function deleteOldKey(context: Context, { profile, profileName }: Settings, newPlace: string): Promise<void> {
  if (!profile) return;
  const { openKeyStore } = await loadKeys();
  try {
    const store = await openKeyStore(profile.key, profileName, profile.server, context.folders);
    if (store.id !== newPlace) await store.delete();
  } catch (error) {
    if (!(error instanceof CallkeyError)) throw error;
    context.output.note(`Couldn't delete the previously stored key, so it's still there. ${error.message}`);
  }
}

function formatServer(server: string | null): string {
  return server === null ? 'Server: none; set one with --server or CALLKEY_SERVER' : `Server: ${server}`;
}

/** Longer than any key. A longer input may be a whole file that was piped in by mistake. */
const maxInputLength = 4_096;

/** Prompts for a key without showing it, or reads it from a pipe. */
function readKeyInput({ streams: { stdin, stderr } }: Context): Promise<string> {
  return stdin.isTTY ? promptHidden(stdin, stderr) : readPiped(stdin);
}

function promptHidden(stdin: Readable, stderr: Writable): Promise<string> {
  stderr.write('API key (input is hidden): ');
  // Readline edits the line as users expect, and its echo goes to a stream that drops it.
  const noEcho = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: noEcho, terminal: true, historySize: 0 });
  return new Promise<string>((resolve, reject) => {
    let text = '';
    lines.on('line', (line) => {
      text += `${line}\n`;
      // A pasted key may have a line break in it. The rest of the paste is already in the next lines, or waits for Enter.
      setImmediate(() => {
        if (lines.line === '' || findKeyValues(text).length > 0) resolve(text);
      });
    });
    lines.once('SIGINT', () => reject(new Interrupted('SIGINT', 'Nothing was stored.')));
    lines.once('close', () => reject(usageError('No key was entered. Run callkey key set again and paste the key at the prompt.')));
  }).finally(() => {
    lines.close();
    stderr.write('\n');
  });
}

async function readPiped(stdin: Readable): Promise<string> {
  let text = '';
  for await (const chunk of stdin) {
    text += String(chunk);
    if (text.length > maxInputLength)
      throw usageError('Standard input is too long for an API key. Pipe in only the key: callkey key set < FILE');
  }
  if (text.trim() === '') throw usageError('Standard input was empty. Pipe the key in: callkey key set < FILE');
  return text;
}

/** Shows which key the next command would use, but never the key itself. */
async function showStatus(context: Context): Promise<void> {
  const settings = await context.settings();
  const { keySetCommand, readEnvironmentKey, readStoredKey, refuseOtherServer } = await loadKeys();
  const { profileName: profile, profile: stored, server } = settings;
  const print = (place: string | null, key: string) =>
    context.output.answer({ profile, server, stored: place }, `Profile: ${profile}\n${formatServer(server)}\nKey: ${key}`);
  const environmentKey = await readEnvironmentKey(context.environment);
  if (environmentKey) return print('environment', environmentKey.where);
  if (stored) {
    if (server !== null) refuseOtherServer(settings, stored);
    const { keyValue, where } = await readStoredKey(stored, profile, context.folders);
    if (keyValue !== undefined) return print(stored.key, `in ${where}`);
  }
  const set = keySetCommand(profile, server ?? undefined);
  print(null, `none; run ${set} to store one`);
  context.endWith(new CallkeyError('notFound', `No key is stored for the profile ${profile}. Run ${set} to store one.`));
}

/** Deletes a profile's key from this machine. The core accepts the key until a user revokes it in the console. */
async function forgetKey(context: Context): Promise<void> {
  const { profileName, profile } = await context.settings();
  if (!profile)
    throw new CallkeyError(
      'notFound',
      `No key is stored for the profile ${profileName}. Run callkey key status to see the profile in use.`,
    );
  const store = await (await loadKeys()).openKeyStore(profile.key, profileName, profile.server, context.folders);
  const forgotten = await store.delete();
  await (await loadSettings()).changeProfiles(context, (profiles) => profiles.delete(profileName));
  context.output.answer(
    { profile: profileName, forgotten },
    `Forgot the profile ${profileName}. Its key keeps working until you revoke it in the console.`,
  );
}
