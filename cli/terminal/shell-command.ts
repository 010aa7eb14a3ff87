import { shellWord } from '#contract/text/shell.ts';
import type { GlobalOptions } from '../settings.ts';

type ProfileOptions = { [Option in keyof Pick<GlobalOptions, 'profile' | 'server' | 'state'>]: string | undefined };

/**
 * Builds a callkey command that users can copy into a shell, with this command's own options for profile, server and state. Environment
 * variables don't need to be repeated, because they apply to the next command as well.
 */
export function shellCommand({ profile, server, state }: ProfileOptions, ...words: string[]): string {
  const options = Object.entries({ profile, server, state }).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  return ['callkey', ...words, ...options].map((word) => shellWord(word, process.platform === 'win32')).join(' ');
}
