import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { shellWord } from '#contract/text/shell.ts';

/** package.json is next to this folder in a checkout, and next to the bundle in the package that `npm run pack:core` builds. */
const packageJson = new URL('../package.json', import.meta.url);
const { name, version }: { name: string; version: string } = JSON.parse(readFileSync(packageJson, 'utf8'));

/** Only the package adds its commands to the PATH. */
const isPackage = name === '@callkey/core';

export { version };
export const adminName = isPackage ? 'callkey-admin' : 'admin';
/** The command that a user types. */
export const adminCommand = isPackage ? adminName : `npm run ${adminName} --`;

/**
 * Starts a sentence with the admin command for the database in use, even if DATABASE_URL was set only for one command. The address of a
 * PostgreSQL server may contain a password, so it isn't repeated.
 */
export function suggestAdmin(databaseUrl: string | undefined, isWindows: boolean, ...words: string[]): string {
  const command = [adminCommand, ...words.map((word) => shellWord(word, isWindows))].join(' ');
  if (databaseUrl === undefined) return `Run ${command}`;
  if (!databaseUrl.startsWith('sqlite:') || isWindows) return `With the same DATABASE_URL, run ${command}`;
  return `Run DATABASE_URL=${shellWord(databaseUrl)} ${command}`;
}

/** `npm run build:web` puts the console here: next to this folder in a checkout, and next to the bundle in the package. */
export const webConsoleFolder = fileURLToPath(new URL('../dist/web', import.meta.url));
/** `npm run pack:cli` puts the command line for integrators here. */
export const commandLinePackage = fileURLToPath(new URL(`../dist/callkey-cli-${version}.tgz`, import.meta.url));
