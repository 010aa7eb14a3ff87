// electron-builder runs this on the folder that it has packed. Every copy must include Chromium's licenses, but uncompressed, they take
// 20 MB.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { AfterPackContext } from 'electron-builder';

export async function afterPack({ appOutDir, electronPlatformName, packager }: AfterPackContext): Promise<void> {
  const folder = electronPlatformName === 'darwin' ? packager.getResourcesDir(appOutDir) : appOutDir;
  const file = join(folder, 'LICENSES.chromium.html');
  await writeFile(`${file}.gz`, await promisify(gzip)(await readFile(file)));
  await rm(file);
}
