// Replaces @napi-rs/keyring inside the executable (scripts/pack-executable.ts), which contains that library's binary. The system can only
// load it from a file.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRawAsset } from 'node:sea';

const loaded: { exports: Partial<typeof import('@napi-rs/keyring')> } = { exports: {} };
// A random name, in a folder that no one else can write to.
const folder = mkdtempSync(join(tmpdir(), 'callkey-'));
try {
  const file = join(folder, 'keyring.node');
  writeFileSync(file, new Uint8Array(getRawAsset('keyring.node')));
  process.dlopen(loaded, file);
} finally {
  // Windows locks a loaded file until the process ends.
  if (process.platform !== 'win32') rmSync(folder, { recursive: true });
}

export const { AsyncEntry } = loaded.exports;
