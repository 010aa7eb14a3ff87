// electron-builder runs these functions while it packs the console.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { AfterPackContext } from 'electron-builder';

/** @returns false, so that electron-builder doesn't rebuild npm's packages, or look for those that the app needs, which takes seconds */
export const beforeBuild = (): boolean => false;

/** Compresses Chromium's licenses. Every copy must include them, but uncompressed, they take 20 MB. */
export function afterPack({ appOutDir, electronPlatformName, packager }: AfterPackContext): void {
  const folder = electronPlatformName === 'darwin' ? packager.getResourcesDir(appOutDir) : appOutDir;
  const file = join(folder, 'LICENSES.chromium.html');
  writeFileSync(`${file}.gz`, gzipSync(readFileSync(file)));
  rmSync(file);
}
