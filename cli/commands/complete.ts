import { readRuns, runName } from '../batch/run-journal.ts';
import type { Context } from '../context.ts';
import { listProfiles } from '../settings.ts';
import { readAliases } from './campaign/campaigns.ts';
import { type ValueKind, valueKinds } from './completion.ts';

const readers: Record<ValueKind, (context: Context) => Promise<string[]>> = {
  campaigns: async (context) => [...(await readAliases(context)).keys()],
  profiles: ({ folders }) => listProfiles(folders),
  runs: async ({ folders }) => (await readRuns(folders)).map(runName),
};

/**
 * Names with other characters come only from a file that callkey didn't write, and a shell would interpret them. bash runs `$(…)` when it
 * lists the suggestions.
 */
const shellSafe = /^[\w.-]+$/;

/** Prints values for a completion script, one per line. Prints nothing if they can't be read, because a user is in the middle of typing. */
export async function complete(context: Context, kind: string): Promise<void> {
  const known = valueKinds.find((name) => name === kind);
  const values = known ? await readers[known](context).catch(() => []) : [];
  for (const value of values.filter((text) => shellSafe.test(text))) context.streams.stdout.write(`${value}\n`);
}
