import { CallkeyError } from '../../client/errors.ts';
import { type Context, loadSettings } from '../../context.ts';
import { openKeyStores } from '../../keys/key-store.ts';
import { deleteProfile } from '../../settings.ts';

/** Deletes a profile's key from this machine. The core accepts the key until a user revokes it in the console. */
export async function keyForget(context: Context): Promise<void> {
  const { profileName, profile } = await loadSettings(context);
  if (!profile)
    throw new CallkeyError(
      'notFound',
      `No key is stored for the profile ${profileName}. Run callkey key status to see the profile in use.`,
    );
  let deleted = false;
  for (const store of await openKeyStores(profile, profileName, context.folders)) deleted = (await store.delete()) || deleted;
  await deleteProfile(context.folders, profileName);
  context.output.answer(
    { profile: profileName, forgotten: deleted },
    `Forgot the profile ${profileName}. Its key keeps working until you revoke it in the console.`,
  );
}
