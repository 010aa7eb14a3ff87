import { CallkeyError } from '../../client/errors.ts';
import { type Context, loadSettings } from '../../context.ts';
import { readKeyInput } from '../../keys/key-input.ts';
import { openKeyStore, openKeyStores } from '../../keys/key-store.ts';
import { checkedKey } from '../../keys/read-key.ts';
import { keyOnCommandLineError } from '../../keys/refuse-key-argument.ts';
import { type KeyLocation, requireServer, type Settings, storeProfile } from '../../settings.ts';

export type KeySetOptions = { insecureStorage?: true };

/** Stores a profile's key and server. */
export async function keySet(context: Context, words: readonly string[], { insecureStorage }: KeySetOptions): Promise<void> {
  if (words.length > 0) throw keyOnCommandLineError();
  const settings = await loadSettings(context);
  const server = requireServer(settings);
  const place: KeyLocation = insecureStorage ? 'file' : 'keychain';
  // The store is opened before the prompt, so that users don't enter a key that can't be stored.
  const store = await openKeyStore(place, settings.profileName, server, context.folders);
  const keyValue = checkedKey(await readKeyInput(context), 'The text you entered');

  await store.write(keyValue);
  // From here on, commands use the new key. If this command stops earlier, they use the old key and server.
  await storeProfile(context.folders, settings.profileName, { server, key: place });
  await deleteOldKey(context, settings, store.id);
  const { profileName: profile } = settings;
  context.output.answer(
    { profile, server, stored: place },
    `Stored the key for the profile ${profile} in ${store.where}.\n${formatServer(server)}`,
  );
}

/**
 * Deletes the old key if it was elsewhere. Otherwise, it would stay there unnoticed. @param newPlace the new key's place, from which
 * nothing is deleted
 */
async function deleteOldKey(context: Context, { profile, profileName }: Settings, newPlace: string): Promise<void> {
  if (!profile) return;
  try {
    const stores = await openKeyStores(profile, profileName, context.folders);
    for (const store of stores) if (store.id !== newPlace) await store.delete();
  } catch (error) {
    if (!(error instanceof CallkeyError)) throw error;
    context.output.note(`Couldn't delete the previously stored key, so it's still there. ${error.message}`);
  }
}

export function formatServer(server: string | null): string {
  return server === null ? 'Server: none; set one with --server or CALLKEY_SERVER' : `Server: ${server}`;
}
