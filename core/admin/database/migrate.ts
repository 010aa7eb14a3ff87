import type { Command } from 'commander';
import { type AdminContext, type Runner, withExamples } from '../command-line.ts';

export function migrateCommand(program: Command, { withDatabase }: Runner): void {
  const command = program.command('migrate').description('update the database schema, as a core does when it starts');
  withExamples(command, 'migrate').action(withDatabase(runMigrate, 'migrate'));
}

async function runMigrate({ storage, output }: AdminContext): Promise<void> {
  const applied = await storage.migrate();
  const text = applied.length === 0 ? 'Nothing to do: the schema is up to date.' : `Applied ${applied.join(', ')}.`;
  output.answer({ migrations: applied }, text);
}
