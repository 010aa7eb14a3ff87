import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Beside this folder in a checkout, and beside the bundle in the package that `npm run pack:core` makes. */
const packageJson = new URL('../package.json', import.meta.url);
const { name, version }: { name: string; version: string } = JSON.parse(readFileSync(packageJson, 'utf8'));

/** Only the package has its commands on the PATH. */
const isPackage = name === '@callkey/core';

export { version };
export const adminName = isPackage ? 'callkey-admin' : 'admin';
/** How a person calls it. */
export const adminCommand = isPackage ? adminName : `npm run ${adminName} --`;
/** Where `npm run build:web` puts the page: next to this folder in a checkout, and next to the bundle in the package. */
export const webConsoleFolder = fileURLToPath(new URL('../dist/web', import.meta.url));
