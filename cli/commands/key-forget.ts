import { type Cli, settingsOf } from '../cli.ts';
import { Failure } from '../failure.ts';
import { openKeyStore } from '../key-store.ts';
import { removeProfile } from '../settings.ts';

/** Removes a profile's key from this machine. It keeps working until it is revoked in the console. */
export async function keyForget(cli: Cli): Promise<void> {
  const { profileName, profile } = await settingsOf(cli);
  if (!profile) throw new Failure('notFound', `No key is stored for the profile ${profileName}.`);
  const store = await openKeyStore(profile.key, profileName, cli.folders);
  const wasThere = await store.remove();
  await removeProfile(cli.folders, profileName);
  cli.output.answer(
    { profile: profileName, forgotten: wasThere },
    `Forgot the profile ${profileName}. Its key still works elsewhere: to end it, revoke it in the console.`,
  );
}
