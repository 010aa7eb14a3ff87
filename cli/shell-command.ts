import type { GlobalOptions } from './settings.ts';

type Where = { [Option in keyof Pick<GlobalOptions, 'profile' | 'server' | 'state'>]: string | undefined };

/**
 * A command of ours as a user can copy it into a shell: with the options that say where, as they were given to this one. What the environment
 * says, it says to the next command, too.
 */
export function shellCommand({ profile, server, state }: Where, ...words: string[]): string {
  const options = Object.entries({ profile, server, state }).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  return ['callkey', ...words, ...options].map(shellWord).join(' ');
}

/** A word as a shell reads it: quoted where it has other characters than those that every shell takes as they are. */
export function shellWord(word: string): string {
  if (/^[\w./:-][\w./:~-]*$/.test(word)) return word;
  // No file of Windows has a double quote in its name, and its shells share no other quote.
  return process.platform === 'win32' ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
}
