import { keyValuePrefix } from '#contract/key-value.ts';
import { CallkeyError } from '../client/errors.ts';

/**
 * Refuses a key in any argument: as a profile name, it would be written to a file, and as a campaign ID, it would be sent in a URL.
 *
 * @throws CallkeyError `usage`
 */
export function refuseKeyArguments(words: readonly string[]): void {
  if (words.some((word) => word.includes(keyValuePrefix))) throw keyOnCommandLineError();
}

export function keyOnCommandLineError(): CallkeyError {
  return new CallkeyError(
    'usage',
    "Don't pass a key on the command line: every user of this machine can see it there (ps), and the shell saves it in its history. " +
      'Run callkey key set and paste the key at the prompt, or run callkey key set < FILE.\n' +
      'If that was a real key, others may have seen it: revoke it in the console and create a new one.',
  );
}
