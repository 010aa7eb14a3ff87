import type { AsyncEntry } from '@napi-rs/keyring';
import { CallkeyError } from '../client/errors.ts';

const keychainNames: Readonly<Record<string, string>> = { darwin: 'Keychain', win32: 'Credential Manager' };

/** Opens the entry with this name in the system's keychain. @throws CallkeyError if there's no keychain */
export async function openKeychain(name: string) {
  const keychain = keychainNames[process.platform] ?? 'Secret Service';
  const entry = await inKeychain(async () => openEntry(await import('@napi-rs/keyring'), name));
  return {
    where: `the system's keychain (${keychain})`,
    read: () => inKeychain(async () => (await entry.getPassword()) ?? undefined),
    write: (keyValue: string) => inKeychain(() => entry.setPassword(keyValue)),
    delete: () => inKeychain(() => entry.deletePassword()),
  };
}

/**
 * Pins the library to the Secret Service. By default, the library falls back to the kernel's keyring, which loses the key on restart and is
 * invisible to other sessions (its README, "Linux backend selection"). When pinned, it throws instead.
 */
function openEntry(keyring: typeof import('@napi-rs/keyring'), name: string): AsyncEntry {
  return new keyring.AsyncEntry('callkey', name, { linux: { store: 'secret-service' } });
}

async function inKeychain<Result>(use: () => Promise<Result>): Promise<Result> {
  try {
    return await use();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CallkeyError(
      'failed',
      `Couldn't use the system's keychain (${reason}). Unlock it${process.platform === 'linux' ? ', or start one that supports the Secret Service (GNOME Keyring, KWallet, KeePassXC)' : ''}; ` +
        'or set CALLKEY_API_KEY, as in CI; or run callkey key set --insecure-storage to store the key in a file that only you can read.',
      { cause: error },
    );
  }
}
