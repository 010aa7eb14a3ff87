import { apiKeyHeader, placeCallPath } from '#contract/headers.ts';
import { pathTo } from '#contract/route.ts';

/** The variable that the command line reads the key from, too. */
const keyVariable = 'CALLKEY_API_KEY';

/** From the numbers that North America reserves for fiction: nobody has it. */
const phone = '+12025550143';

/**
 * A command for a shell that asks for the key and places a call. The key's value is in neither the shell's history nor the list of processes:
 * `read` and `printf` belong to the shell, and curl reads the header from its input.
 *
 * @param requestId another one for each key: the same one again places no second call
 */
export function exampleCall(server: string, campaignId: string, requestId: string): string {
  const url = server.replace(/\/+$/, '') + decodeURIComponent(pathTo({ path: placeCallPath }, { campaignId }));
  return `printf 'API key: ' && read -rs ${keyVariable} && printf '${apiKeyHeader}: %s' "$${keyVariable}" |
  curl ${url} \\
  -H @- -H 'Content-Type: application/json' \\
  -d '${JSON.stringify({ requestId, contact: { phone } })}'`;
}

/** The key's value as a line of a `.env` file. */
export function keyLine(keyValue: string): string {
  return `${keyVariable}=${keyValue}`;
}
