import type { Command } from 'commander';
import { endOverdueCalls, eraseOldContacts } from '../domain/retention.ts';
import type { AdminContext, Runner } from './context.ts';

export function retentionCommands(program: Command, { withDatabase }: Runner): void {
  const retention = program
    .command('retention')
    .description('the contact data of calls that ended long ago (RETENTION_DAYS, 90 by default)');
  retention.command('show').description('show for how many calls it can be erased').action(withDatabase(runShow));
  retention.command('run').description('erase it now; a core erases it each hour').action(withDatabase(runErase));
}

async function runShow({ ports, output, retentionDays }: AdminContext): Promise<void> {
  if (retentionDays === null) {
    output.answer({ retentionDays, erasable: 0 }, 'RETENTION_DAYS is off: contact data is kept.');
    return;
  }
  const erasable = await ports.stores.retention.countErasable(ports.clock.now().minus({ days: retentionDays }));
  output.answer({ retentionDays, erasable }, `${erasable} calls ended more than ${retentionDays} days ago and still have contact data.`);
}

async function runErase({ ports, output, retentionDays }: AdminContext): Promise<void> {
  await endOverdueCalls(ports.stores.dialing, ports.clock);
  const erased = retentionDays === null ? 0 : await eraseOldContacts(ports.stores.retention, ports.clock, retentionDays);
  output.answer({ retentionDays, erased }, `Erased the contact data of ${erased} calls.`);
}
