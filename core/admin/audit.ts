import type { Command } from 'commander';
import { z } from 'zod';
import { counted } from '#contract/text/count.ts';
import { verifyChain } from '../domain/audit/audit-chain.ts';
import { type AdminContext, parseInput, type Runner, withExamples } from './command-line.ts';

export function auditCommands(program: Command, { withDatabase }: Runner): void {
  const audit = program.command('audit').description('verify the audit log, in which each event is chained to the one before it');
  const verify = audit
    .command('verify')
    .argument(
      '[seals...]',
      "a seal (NUMBER:HASH) from an earlier run or from a core's log; checks that the events up to it haven't changed",
    )
    .description('check for missing or modified events');
  withExamples(verify, 'audit verify', `audit verify 1204:${'5f0c9a1e'.repeat(8)}`).action(withDatabase(runVerify));
}

const sealSchema = z
  .string()
  .regex(/^[1-9]\d{0,14}:[0-9a-f]{64}$/, { error: 'Must be a number, a colon, and 64 hexadecimal digits.' })
  .transform((text) => ({ seq: Number(text.split(':')[0]), hash: text.split(':')[1] ?? '' }));

async function runVerify({ ports, output }: AdminContext, seals: string[]): Promise<boolean> {
  const parsedSeals = seals.map((seal) => parseInput(sealSchema, seal, 'SEAL'));
  const { faults, ...report } = await verifyChain(ports.stores.auditChain, parsedSeals);
  const ok = faults.length === 0;
  const shown = `${report.seal.seq}:${report.seal.hash}`;
  const lines = faults.map((fault) => `FAIL   ${fault}`);
  const isEmpty = report.seal.seq === 0;
  if (ok)
    lines.push(isEmpty ? 'ok     The audit chain is still empty.' : `ok     ${counted(report.events, 'event')} verified. Seal: ${shown}`);
  if (report.pruned > 0) lines.push(`       Deleted because of age: ${counted(report.pruned, 'older event')}.`);
  if (report.unchained > 0)
    lines.push(`       Not chained yet: ${counted(report.unchained, 'newer event')}. A core chains new events every minute.`);
  output.answer({ ok, ...report, seal: shown, faults }, lines.join('\n'));
  return ok;
}
