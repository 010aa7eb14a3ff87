import { CallkeyError } from '../../client/errors.ts';
import { type Context, loadSettings } from '../../context.ts';
import { keyOnCommandLine } from '../../keys/key-argument.ts';
import { readKeyInput } from '../../keys/key-input.ts';
import { checkedKey, openKeyStore } from '../../keys/key-store.ts';
import { type KeyPlace, type Settings, storeProfile } from '../../settings.ts';

export type KeySetOptions = { insecureStorage?: true };

/** Stores a profile's key and server. */
export async function keySet(context: Context, words: readonly string[], { insecureStorage }: KeySetOptions): Promise<void> {
  if (words.length > 0) throw keyOnCommandLine();
  const settings = await loadSettings(context);
  const place: KeyPlace = insecureStorage ? 'file' : 'keychain';
  // Before the prompt, so that users don't enter a key that can't be stored.
  const store = await openKeyStore(place, settings.profileName, context.folders);
  const keyValue = checkedKey(await readKeyInput(context), 'The text you entered');

  await store.write(keyValue);
  await storeProfile(context.folders, settings.profileName, { server: settings.server, key: place });
  await deleteFromOldPlace(context, settings, place);
  const { profileName: profile, server } = settings;
  context.output.answer(
    { profile, server, stored: place },
    `Stored the key for the profile ${profile} in ${store.where}.\n${serverText(server)}`,
  );
}

/** Deletes the old key from the other place. Otherwise, it would stay there unnoticed. */
async function deleteFromOldPlace(context: Context, { profile, profileName }: Settings, place: KeyPlace): Promise<void> {
  if (!profile || profile.key === place) return;
  try {
    await (await openKeyStore(profile.key, profileName, context.folders)).delete();
  } catch (error) {
    if (!(error instanceof CallkeyError)) throw error;
    context.output.note(`Couldn't delete the previously stored key, so it's still there. ${error.message}`);
  }
}

export function serverText(server: string | null): string {
  return server === null ? 'Server: none; set one with --server or CALLKEY_SERVER' : `Server: ${server}`;
}
