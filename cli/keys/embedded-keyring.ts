// In the place of @napi-rs/keyring within the executable (scripts/pack-executable.ts), which holds that library's binary: a system loads one
// from a file only.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRawAsset } from 'node:sea';

const loaded: { exports: Partial<typeof import('@napi-rs/keyring')> } = { exports: {} };
// Of a name that nobody can guess, in a folder that nobody else can write to.
const folder = mkdtempSync(join(tmpdir(), 'callkey-'));
try {
  const file = join(folder, 'keyring.node');
  writeFileSync(file, new Uint8Array(getRawAsset('keyring.node')));
  process.dlopen(loaded, file);
} finally {
  // Windows keeps a loaded file until the process ends.
  if (process.platform !== 'win32') rmSync(folder, { recursive: true });
}

export const { AsyncEntry } = loaded.exports;
