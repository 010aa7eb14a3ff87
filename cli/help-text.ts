import type { Context } from './context.ts';

/** Runs a command's action with the command's context. */
export type RunAction = (work: (context: Context) => Promise<void>) => Promise<void>;

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join('')}`;
}

export const exitCodesHelp = `
Exit codes: 0 success · 2 usage error or invalid input · 3 key rejected · 4 campaign access denied
            5 too late, or a conflict · 6 not found · 7 unreachable or overloaded · 1 any other error`;

export const environmentHelp = `
Environment: CALLKEY_API_KEY (used instead of a stored key, for example in CI), CALLKEY_API_KEY_FILE (a file that contains the key), CALLKEY_SERVER, CALLKEY_CAMPAIGN, CALLKEY_PROFILE, CALLKEY_UPDATE_NOTICE, HTTPS_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS, NO_COLOR`;
