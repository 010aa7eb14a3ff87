import type { Context } from '../context.ts';

/** Runs a command's action with the command's context. */
export type RunAction = (work: (context: Context) => Promise<void>) => Promise<void>;

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join('')}`;
}

export const exitCodesHelp = `
Exit codes:
  0 success                          4 campaign access denied
  1 any other error                  5 too late, or a conflict
  2 usage error or invalid input     6 not found
  3 key rejected                     7 unreachable or overloaded
  8 not callable: do-not-call list or calling hours`;

export const environmentHelp = `

Environment:
  CALLKEY_API_KEY       key to use instead of a stored one, for example in CI
  CALLKEY_API_KEY_FILE  file that contains the key
  CALLKEY_SERVER, CALLKEY_CAMPAIGN, CALLKEY_PROFILE, CALLKEY_UPDATE_NOTICE,
  HTTPS_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS, NO_COLOR`;
