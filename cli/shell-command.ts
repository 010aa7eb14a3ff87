import type { GlobalOptions } from './settings.ts';

type Where = { [Option in keyof Pick<GlobalOptions, 'profile' | 'server' | 'state'>]: string | undefined };

/**
 * A callkey command that users can copy into a shell, with the same options for profile, server and state that this one was given.
 * Environment variables apply to the next command anyway.
 */
export function shellCommand({ profile, server, state }: Where, ...words: string[]): string {
  const options = Object.entries({ profile, server, state }).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  return ['callkey', ...words, ...options].map(shellWord).join(' ');
}

/** A word quoted for the shell, unless it contains only characters that every shell leaves as they are. */
export function shellWord(word: string): string {
  if (/^[\w./:-][\w./:~-]*$/.test(word)) return word;
  // No Windows file name contains a double quote, and its shells have no other quote in common.
  return process.platform === 'win32' ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
}
