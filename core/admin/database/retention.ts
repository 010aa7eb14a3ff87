import type { Command } from 'commander';
import { counted } from '#contract/text/count.ts';
import { timestamp } from '#contract/text/text.ts';
import { findPrunable, pruneAudit } from '../../domain/audit/audit-chain.ts';
import { eraseOldContacts } from '../../domain/calls/contacts.ts';
import { dialingLimits, endOverdueCalls } from '../../domain/calls/dialing.ts';
import { requireTrustedClock } from '../../domain/clock.ts';
import { oneDay, plus } from '../../domain/instant.ts';
import type { Ports, RetentionDays } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';
import { defaultRetention } from '../../server/start/config.ts';
import { type AdminContext, type Runner, withExamples } from '../command-line.ts';

export function retentionCommands(program: Command, { withDatabase }: Runner): void {
  const retention = program
    .command('retention')
    .description('show and apply the retention periods of contact data (RETENTION_DAYS) and audit events (AUDIT_RETENTION_DAYS)');
  const show = retention.command('show').description('show retention periods and what is due to be erased');
  withExamples(show, 'retention show').action(withDatabase(runShow));
  const run = retention
    .command('run')
    .option('--dry-run', 'show what is due, without erasing it')
    .description('erase everything that is due now, as a core does every hour');
  withExamples(run, 'retention run', 'retention run --dry-run').action(withDatabase(runErase));
}

/** Stands for no limit: about a thousand years. */
const unlimitedDays = 365_000;

/** Returns the retention settings that the cores use. `isKnown` is false if these are only the defaults. @throws Problem `conflict` */
async function readDays({ ports, configuredDays }: AdminContext): Promise<RetentionDays & { isKnown: boolean }> {
  const recorded = await ports.stores.retention.recordedDays();
  for (const [kind, variable] of [
    ['contacts', 'RETENTION_DAYS'],
    ['auditEvents', 'AUDIT_RETENTION_DAYS'],
  ] as const) {
    const days = configuredDays[kind];
    if (!recorded || days === undefined || days === recorded[kind]) continue;
    const what = `${variable} is ${days ?? 'off'} here, and was ${recorded[kind] ?? 'off'} when a core last started.`;
    throw new Problem('conflict', `${what} Unset it here, or start the core with the new value first.`);
  }
  return { ...defaultRetention, ...configuredDays, ...recorded, isKnown: recorded !== null || configuredDays.contacts !== undefined };
}

async function runShow(context: AdminContext): Promise<void> {
  const { ports, output } = context;
  const { contacts: retentionDays, auditEvents: auditRetentionDays, isKnown } = await readDays(context);
  const { retention, auditChain } = ports.stores;
  const { erasable, oldestEndedAt } = await retention.countErasable(plus(ports.clock.now(), -(retentionDays ?? unlimitedDays) * oneDay));
  const oldestEventAt = await auditChain.oldestAt();
  const lapseDays = dialingLimits.life.as('days');
  const lines = [
    retentionDays === null
      ? 'Contact data: kept (RETENTION_DAYS is off).'
      : `${isKnown ? '' : 'No core has recorded its retention settings yet. These are the defaults.\n'}Contact data: erased ${counted(retentionDays, 'day')} after a call ends (RETENTION_DAYS). Due now: ${counted(erasable, 'call')}.`,
    `  Oldest call with contact data ended: ${oldestEndedAt ? timestamp(oldestEndedAt) : 'none'}.`,
    `  A call that is never dialed ends at its notAfter or, without one, ${lapseDays} days after it was due.`,
    auditRetentionDays === null
      ? 'Audit events: kept (AUDIT_RETENTION_DAYS is off).'
      : `Audit events: deleted after ${counted(auditRetentionDays, 'day')} (AUDIT_RETENTION_DAYS).`,
    `  Oldest event: ${oldestEventAt === null ? 'none yet' : timestamp(oldestEventAt)}.`,
  ];
  const json = {
    ...{ retentionDays, erasable, oldestEndedAt: oldestEndedAt && timestamp(oldestEndedAt), lapseDays },
    ...{ auditRetentionDays, oldestEventAt: oldestEventAt === null ? null : timestamp(oldestEventAt) },
  };
  output.answer(json, lines.join('\n'));
}

async function runErase(context: AdminContext, { dryRun = false }: { dryRun?: boolean }): Promise<void> {
  const { ports, output } = context;
  const { contacts: retentionDays, auditEvents: auditRetentionDays, isKnown } = await readDays(context);
  if (!isKnown) {
    const what = 'No core has recorded its RETENTION_DAYS in this database yet.';
    throw new Problem('conflict', `${what} Start a core, or set RETENTION_DAYS to the core's value.`);
  }
  const days = { contacts: retentionDays, auditEvents: auditRetentionDays };
  const { erased, auditEvents } = await (dryRun ? countDue(ports, days) : eraseDue(context, days));
  const text = dryRun
    ? `Would erase contact data from ${counted(erased, 'call')} and delete ${counted(auditEvents, 'audit event')}.`
    : `Erased contact data from ${counted(erased, 'call')} and deleted ${counted(auditEvents, 'audit event')}.`;
  output.answer({ dryRun, retentionDays, erased, auditRetentionDays, auditEvents }, text);
}

type Due = { erased: number; auditEvents: number };

async function countDue(ports: Ports, { contacts, auditEvents }: RetentionDays): Promise<Due> {
  const { retention } = ports.stores;
  const erasable = contacts === null ? 0 : (await retention.countErasable(plus(ports.clock.now(), -contacts * oneDay))).erasable;
  const prunable = auditEvents === null ? null : await findPrunable(ports, auditEvents);
  return { erased: erasable, auditEvents: prunable ? prunable.last.seq - prunable.first + 1 : 0 };
}

async function eraseDue({ ports, caller: { actor } }: AdminContext, days: RetentionDays): Promise<Due> {
  await requireTrustedClock(ports);
  // At a signal, the command stops after the current batch, and still records what it has erased so far. A second signal ends the process.
  const stopping = new AbortController();
  const stop = (by: NodeJS.Signals) => stopping.abort(new Error(`Received ${by}. Run the command again to erase the rest.`));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop);
  const { signal } = stopping;
  await endOverdueCalls(ports.stores.dialing, ports.clock, signal);
  const erased = days.contacts === null ? 0 : await eraseOldContacts(ports, actor, days.contacts, signal);
  await ports.stores.auditChain.extend(signal);
  return { erased, auditEvents: days.auditEvents === null ? 0 : await pruneAudit(ports, actor, days.auditEvents, signal) };
}
