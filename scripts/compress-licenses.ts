// electron-builder runs this on the packed folder. Every copy must include Chromium's licenses, but uncompressed, they take 20 MB.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { AfterPackContext } from 'electron-builder';

export function afterPack({ appOutDir, electronPlatformName, packager }: AfterPackContext): void {
  const folder = electronPlatformName === 'darwin' ? packager.getResourcesDir(appOutDir) : appOutDir;
  const file = join(folder, 'LICENSES.chromium.html');
  writeFileSync(`${file}.gz`, gzipSync(readFileSync(file)));
  rmSync(file);
}
