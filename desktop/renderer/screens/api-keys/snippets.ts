import { apiKeyHeader, placeCallPath } from '#contract/headers.ts';
import { pathTo } from '#contract/routes/route.ts';
import { shellWord } from '#contract/text/shell.ts';

/** The variable that the command line reads the key from. */
const keyVariable = 'CALLKEY_API_KEY';

/** One of the numbers that Germany reserves for films, so no one has it. The simulated dialer reports the call as answered. */
const phone = '+493023125000';

/**
 * Builds a shell command that asks for the key and places a call. The key's value appears neither in the shell's history nor in the process
 * list: `read` and `printf` are built into the shell, and curl reads the header from its input.
 *
 * @param requestId must differ for each key, because the same ID doesn't place a second call
 */
export function exampleCall(server: string, campaignId: string, requestId: string): string {
  const url = server.replace(/\/+$/, '') + decodeURIComponent(pathTo({ path: placeCallPath }, { campaignId }));
  return `printf 'API key: ' && read -rs ${keyVariable} && printf '${apiKeyHeader}: %s' "$${keyVariable}" |
  curl ${shellWord(url)} \\
  -H @- -H 'Content-Type: application/json' \\
  -d ${shellWord(JSON.stringify({ requestId, contact: { phone } }))}`;
}

/** Formats the key's value as a line of a `.env` file. */
export function keyLine(keyValue: string): string {
  return `${keyVariable}=${keyValue}`;
}
