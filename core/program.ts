import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** package.json is next to this folder in a checkout, and next to the bundle in the package that `npm run pack:core` builds. */
const packageJson = new URL('../package.json', import.meta.url);
const { name, version }: { name: string; version: string } = JSON.parse(readFileSync(packageJson, 'utf8'));

/** Only the package adds its commands to the PATH. */
const isPackage = name === '@callkey/core';

export { version };
export const adminName = isPackage ? 'callkey-admin' : 'admin';
/** The command that a user types. */
export const adminCommand = isPackage ? adminName : `npm run ${adminName} --`;

/** `npm run build:web` puts the console here: next to this folder in a checkout, and next to the bundle in the package. */
export const webConsoleFolder = fileURLToPath(new URL('../dist/web', import.meta.url));
/** `npm run pack:cli` puts the command line for integrators here. */
export const commandLinePackage = fileURLToPath(new URL(`../dist/callkey-cli-${version}.tgz`, import.meta.url));
