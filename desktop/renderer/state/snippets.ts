import { apiKeyHeader } from '#contract/headers.ts';
import { paths, pathTo } from '#contract/paths.ts';

/** The variable that the command line reads the key from, too. */
const keyVariable = 'CALLKEY_API_KEY';

const body = JSON.stringify({ contact: { phone: '+493012345678' } });

/** A request that places a call, for a shell. The key's value comes from the environment: typed, it would stay in the shell's history. */
export function exampleCall(server: string, campaignId: string): string {
  const url = server.replace(/\/+$/, '') + decodeURIComponent(pathTo(paths.placeCall, { campaignId }));
  return `curl ${url} \\
  -H "${apiKeyHeader}: $${keyVariable}" -H "Content-Type: application/json" \\
  -d '${body}'`;
}

/** The key's value as a line of a `.env` file. */
export function keyLine(keyValue: string): string {
  return `${keyVariable}=${keyValue}`;
}
