// Replaces @napi-rs/keyring inside the executable (scripts/pack-executable.ts). The executable contains that library's binary, but the
// system can load it only from a file.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRawAsset } from 'node:sea';

const loaded: { exports: Partial<typeof import('@napi-rs/keyring')> } = { exports: {} };
// The folder has a random name, and no one else can write to it.
const folder = mkdtempSync(join(tmpdir(), 'callkey-'));
try {
  const file = join(folder, 'keyring.node');
  writeFileSync(file, new Uint8Array(getRawAsset('keyring.node')));
  process.dlopen(loaded, file);
} finally {
  // On Windows, the folder can't be deleted, because a loaded file is locked until the process ends.
  if (process.platform !== 'win32') rmSync(folder, { recursive: true });
}

export const { AsyncEntry } = loaded.exports;
