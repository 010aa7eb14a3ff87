import { CallkeyError } from '../client/errors.ts';
import { type Context, settingsOf } from '../context.ts';
import { openKeyStore } from '../keys/key-store.ts';
import { deleteProfile } from '../settings.ts';

/** Removes a profile's key from this machine. It keeps working until it is revoked in the console. */
export async function keyForget(context: Context): Promise<void> {
  const { profileName, profile } = await settingsOf(context);
  if (!profile) throw new CallkeyError('notFound', `No key is stored for the profile ${profileName}.`);
  const store = await openKeyStore(profile.key, profileName, context.folders);
  const wasThere = await store.remove();
  await deleteProfile(context.folders, profileName);
  context.output.answer(
    { profile: profileName, forgotten: wasThere },
    `Forgot the profile ${profileName}. Its key still works elsewhere: to end it, revoke it in the console.`,
  );
}
