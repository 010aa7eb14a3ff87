import type { GlobalOptions } from '../settings.ts';

type ProfileOptions = { [Option in keyof Pick<GlobalOptions, 'profile' | 'server' | 'state'>]: string | undefined };

/**
 * Builds a callkey command that users can copy into a shell, with this command's own options for profile, server and state. Environment
 * variables don't need to be repeated, because they apply to the next command as well.
 */
export function shellCommand({ profile, server, state }: ProfileOptions, ...words: string[]): string {
  const options = Object.entries({ profile, server, state }).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  return ['callkey', ...words, ...options].map(shellWord).join(' ');
}

/** Quotes a word for the shell, unless it contains only characters that every shell leaves as they are. */
export function shellWord(word: string): string {
  if (/^[\w./:-][\w./:~@-]*$/.test(word)) return word;
  // Windows file names can't contain a double quote, and it's the only quote that all Windows shells support.
  return process.platform === 'win32' ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
}
