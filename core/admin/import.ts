import { setTimeout } from 'node:timers/promises';
import type { Command } from 'commander';
import { ImportInterrupted, type ImportResult, importAll, importFileSchema } from '../domain/directory/import.ts';
import { oneTimePasswordNote } from '../domain/directory/users.ts';
import { type AdminContext, type Output, parseInput, type Runner, table, withExamples } from './command-line.ts';
import { readJson } from './files.ts';

export function importCommand(program: Command, { withDatabase }: Runner): void {
  const command = program
    .command('import <file>')
    .description(
      'create and update partners, accounts, campaigns and users from a JSON file, and disable users; if interrupted, run it again to finish',
    );
  withExamples(command, 'import tenancy.json', '--json import tenancy.json').action(withDatabase(runImport, 'fill'));
}

async function runImport({ ports, storage, caller: { actor }, output, resolveFile }: AdminContext, path: string): Promise<void> {
  const file = resolveFile(path);
  const input = parseInput(importFileSchema, await readJson(file), file);
  try {
    answer(output, await importAll(ports, storage.imports, pause, actor, input));
  } catch (error) {
    if (!(error instanceof ImportInterrupted)) throw error;
    // Print the one-time passwords of the users created so far, because they can't be shown later.
    answer(output, error.soFar);
    throw error;
  }
}

const interruption: { by?: NodeJS.Signals } = {};

/**
 * Pauses between two steps. SQLite's lock isn't fair: a process that has been waiting for a while tries again only every 100 ms. Without a
 * longer pause, the next step would take the lock before a running core tries again. If interrupted, the import stops between two steps,
 * and still shows the passwords.
 */
async function pause(): Promise<void> {
  if (process.listenerCount('SIGINT') === 0) {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => Object.assign(interruption, { by: signal }));
  }
  await setTimeout(120);
  if (interruption.by) throw new Error(`Received ${interruption.by}.`);
}

const uncertainNote =
  "The database didn't confirm whether these users were created. If they weren't, the next import creates them, and shows new passwords.";

const signedOutNote =
  'The sessions of these users have ended, because their email address, type, account or partner has changed. With a new address, the link to an identity at the provider has ended, too. The password and the second factor are still the same: if the address now belongs to someone else, reset them.';

function answer(output: Output, { passwords, uncertain, signedOut, ...counts }: ImportResult): void {
  const rows = Object.entries(counts).map(([kind, { added, changed, unchanged }]) => [kind, ...[added, changed, unchanged].map(String)]);
  const lines = [table(['', 'ADDED', 'CHANGED', 'UNCHANGED'], rows)];
  for (const [users, note] of [
    [passwords, oneTimePasswordNote],
    [uncertain, uncertainNote],
  ] as const) {
    const cells = users.map(({ email, password }) => [email, password]);
    if (cells.length > 0) lines.push('', table(['EMAIL', 'ONE-TIME PASSWORD'], cells), note);
  }
  if (signedOut.length > 0) {
    const cells = signedOut.map(({ email, previousEmail, sessions, unlinked }) => [
      ...[email ?? '', previousEmail ?? '', String(sessions), unlinked ? 'removed' : ''],
    ]);
    lines.push('', table(['SIGNED OUT', 'PREVIOUS EMAIL', 'SESSIONS', 'LINK'], cells), signedOutNote);
  }
  output.answer({ ...counts, passwords, signedOut, ...(uncertain.length > 0 ? { uncertain } : {}) }, lines.join('\n'));
}
