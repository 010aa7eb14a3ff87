import type { Command } from 'commander';
import { timestamp } from '#contract/text.ts';
import { pruneAudit } from '../domain/audit-chain.ts';
import { dialingLimits } from '../domain/dialing.ts';
import { endOverdueCalls, eraseOldContacts } from '../domain/retention.ts';
import type { AdminContext, Runner } from './context.ts';
import { withExamples } from './help.ts';

export function retentionCommands(program: Command, { withDatabase }: Runner): void {
  const retention = program
    .command('retention')
    .description('contact data of calls that ended long ago (RETENTION_DAYS), and old audit events (AUDIT_RETENTION_DAYS)');
  const show = retention.command('show').description('show what is kept for how long, and what can be erased');
  withExamples(show, 'retention show').action(withDatabase(runShow));
  const run = retention.command('run').description('erase now what is due; a core does it each hour');
  withExamples(run, 'retention run').action(withDatabase(runErase));
}

/** In days. */
const longerThanAny = 365_000;

async function runShow({ ports, output, retentionDays, auditRetentionDays }: AdminContext): Promise<void> {
  const { retention, auditChain } = ports.stores;
  const { erasable, oldestEndedAt } = await retention.countErasable(ports.clock.now().minus({ days: retentionDays ?? longerThanAny }));
  const oldestEventAt = await auditChain.oldestAt();
  const lapseDays = dialingLimits.life.as('days');
  const lines = [
    retentionDays === null
      ? 'Contact data: kept (RETENTION_DAYS is off).'
      : `Contact data: erased ${retentionDays} days after a call has ended (RETENTION_DAYS). ${erasable} calls are due.`,
    `  The oldest call that has some ended: ${oldestEndedAt ? timestamp(oldestEndedAt) : 'none has'}.`,
    `  A call that nobody dials ends at its notAfter, or ${lapseDays} days after it was due without one.`,
    auditRetentionDays === null
      ? 'Audit events: kept (AUDIT_RETENTION_DAYS is off).'
      : `Audit events: deleted after ${auditRetentionDays} days (AUDIT_RETENTION_DAYS).`,
    `  The oldest one: ${oldestEventAt === null ? 'there is none yet' : timestamp(oldestEventAt)}.`,
  ];
  const json = {
    ...{ retentionDays, erasable, oldestEndedAt: oldestEndedAt && timestamp(oldestEndedAt), lapseDays },
    ...{ auditRetentionDays, oldestEventAt: oldestEventAt === null ? null : timestamp(oldestEventAt) },
  };
  output.answer(json, lines.join('\n'));
}

async function runErase({ ports, actor, output, retentionDays, auditRetentionDays }: AdminContext): Promise<void> {
  await endOverdueCalls(ports.stores.dialing, ports.clock);
  const erased = retentionDays === null ? 0 : await eraseOldContacts(ports, actor, retentionDays);
  await ports.stores.auditChain.extend();
  const auditEvents = auditRetentionDays === null ? 0 : await pruneAudit(ports, actor, auditRetentionDays);
  const text = `Erased the contact data of ${erased} calls, and deleted ${auditEvents} audit events.`;
  output.answer({ retentionDays, erased, auditRetentionDays, auditEvents }, text);
}
