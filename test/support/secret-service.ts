import { AsyncEntry } from '@napi-rs/keyring';

/** Why there is no keychain to test with, in a few words; undefined where there is one. */
export async function whyNoSecretService(): Promise<string | undefined> {
  // Off Linux, it would be that of whoever runs the tests, and might ask them.
  if (process.platform !== 'linux') return 'only Linux has one that is apart from its user’s';
  try {
    await new AsyncEntry('callkey-test', 'probe', { linux: { store: 'secret-service' } }).getPassword();
    return undefined;
  } catch {
    return 'no Secret Service is running here';
  }
}
