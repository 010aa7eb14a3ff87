import type { Command } from 'commander';
import { timestamp } from '#contract/text/text.ts';
import { acceptClock, describeDoubt, findDoubt } from '../../domain/clock.ts';
import { type AdminContext, type Runner, withExamples } from '../command-line.ts';

export function clockCommands(program: Command, { withDatabase }: Runner): void {
  const clock = program.command('clock').description('show or confirm the current time, which decides when calls end and data is erased');
  const show = clock.command('show').description("compare this machine's clock with the times recorded in the database");
  withExamples(show, 'clock show').action(withDatabase(runShow));
  const accept = clock
    .command('accept')
    .description("confirm that this machine's clock is right, for example if no core has run for more than a week");
  withExamples(accept, 'clock accept').action(withDatabase(runAccept));
}

async function runShow({ ports, output }: AdminContext): Promise<boolean> {
  const now = ports.clock.now();
  const recorded = await ports.stores.clock.read();
  const doubt = findDoubt(recorded, now);
  const { newestAt, serverAt } = recorded;
  const instants = { now: timestamp(now), recordedAt: newestAt && timestamp(newestAt), serverAt: serverAt && timestamp(serverAt) };
  const lines = [
    `This machine:         ${instants.now}`,
    `Newest recorded time: ${instants.recordedAt ?? 'none'}`,
    ...(instants.serverAt === null ? [] : [`PostgreSQL:           ${instants.serverAt}`]),
    ...(doubt ? [describeDoubt(doubt, ports)] : []),
  ];
  output.answer({ ok: doubt === null, ...instants }, lines.join('\n'));
  return doubt === null;
}

async function runAccept({ ports, caller: { actor }, output }: AdminContext): Promise<void> {
  const at = timestamp(await acceptClock(ports, actor));
  output.answer(
    { acceptedAt: at },
    `Accepted ${at} as the current time. Within a minute, cores will dial calls, end calls and erase data again.`,
  );
}
