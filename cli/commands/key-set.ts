import { type Cli, settingsOf } from '../cli.ts';
import { Failure } from '../failure.ts';
import { keyOnCommandLine } from '../key-argument.ts';
import { readKeyInput } from '../key-input.ts';
import { checkedKey, openKeyStore } from '../key-store.ts';
import { type KeyPlace, type Settings, storeProfile } from '../settings.ts';

export type KeySetOptions = { insecureStorage?: true };

/** Stores a profile's key, and the server that it is for. */
export async function keySet(cli: Cli, words: readonly string[], { insecureStorage }: KeySetOptions): Promise<void> {
  if (words.length > 0) throw keyOnCommandLine();
  const settings = await settingsOf(cli);
  const place: KeyPlace = insecureStorage ? 'file' : 'keychain';
  // Before the prompt: nobody should type a key that cannot be stored.
  const store = await openKeyStore(place, settings.profileName, cli.folders);
  const keyValue = checkedKey(await readKeyInput(cli), 'What was given');

  await store.write(keyValue);
  await storeProfile(cli.folders, settings.profileName, { server: settings.server, key: place });
  await removeElsewhere(cli, settings, place);
  const { profileName: profile, server } = settings;
  cli.output.answer(
    { profile, server, stored: place },
    `Stored the key of the profile ${profile} in ${store.where}.\n${serverText(server)}`,
  );
}

/** A key that is stored anew must not leave the old one lying in another place. */
async function removeElsewhere(cli: Cli, { profile, profileName }: Settings, place: KeyPlace): Promise<void> {
  if (!profile || profile.key === place) return;
  try {
    await (await openKeyStore(profile.key, profileName, cli.folders)).remove();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    cli.output.note(`The key that was stored before is still where it was. ${error.message}`);
  }
}

export function serverText(server: string | null): string {
  return server === null ? 'Server: none yet; give one with --server or CALLKEY_SERVER' : `Server: ${server}`;
}
