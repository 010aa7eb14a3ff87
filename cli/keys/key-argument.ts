import { keyValuePrefix } from '#contract/key-value.ts';
import { CallkeyError } from '../client/errors.ts';

/**
 * Whatever a key on the command line was meant for: as a profile's name it would be written down, as a campaign's id it would be sent
 * in a path.
 *
 * @throws Failure `usage`
 */
export function refuseKeyArguments(words: readonly string[]): void {
  if (words.some((word) => word.includes(keyValuePrefix))) throw keyOnCommandLine();
}

export function keyOnCommandLine(): CallkeyError {
  return new CallkeyError(
    'usage',
    'A key is not taken from the command line: everybody on this machine can see it there (ps), and the shell keeps it in its history. ' +
      'Run callkey key set and paste it at the prompt, or pipe it in: callkey key set < FILE\n' +
      'If that was a real key, it may have been seen by now: revoke it in the console and create another.',
  );
}
