import { AsyncEntry } from '@napi-rs/keyring';

/** Returns why the keychain can't be tested here; undefined if it can. */
export async function whyNoSecretService(): Promise<string | undefined> {
  // On other systems, the tests would use the developer's own keychain, which may ask for a password.
  if (process.platform !== 'linux') return 'only Linux has a keychain apart from the developer’s own';
  try {
    await new AsyncEntry('callkey-test', 'probe', { linux: { store: 'secret-service' } }).getPassword();
    return undefined;
  } catch {
    return 'no Secret Service is running here';
  }
}
