import type { Context } from './context.ts';

/** Runs a command's action with its context. */
export type RunAction = (work: (context: Context) => Promise<void>) => Promise<void>;

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join('')}`;
}

export const exitCodesHelp = `
Exit codes: 0 done · 2 wrong usage or input · 3 key refused · 4 campaign refused · 5 too late, or a conflict · 6 not found
            7 unreachable or overloaded · 1 anything else`;

export const environmentHelp = `
Environment: CALLKEY_API_KEY (instead of a stored key, for CI), CALLKEY_API_KEY_FILE (a file with it), CALLKEY_SERVER, CALLKEY_CAMPAIGN,
             CALLKEY_PROFILE, CALLKEY_UPDATE_NOTICE, HTTPS_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS, NO_COLOR`;
