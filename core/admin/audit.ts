import type { Command } from 'commander';
import { z } from 'zod';
import { verifyChain } from '../domain/audit-chain.ts';
import type { AdminContext, Runner } from './context.ts';
import { withExamples } from './help.ts';
import { parseInput } from './input.ts';

export function auditCommands(program: Command, { withDatabase }: Runner): void {
  const audit = program.command('audit').description('the audit events, of which each one is chained to the one before');
  const verify = audit
    .command('verify')
    .argument('[seals...]', 'NUMBER:HASH, as this command showed it earlier or a core has logged it: events up to it must be the same')
    .description('look whether an event is missing or was changed');
  withExamples(verify, 'audit verify', `audit verify 1204:${'5f0c9a1e'.repeat(8)}`).action(withDatabase(runVerify));
}

const sealSchema = z
  .string()
  .regex(/^[1-9]\d{0,14}:[0-9a-f]{64}$/, { error: 'Give a number, a colon and 64 hexadecimal digits.' })
  .transform((text) => ({ seq: Number(text.split(':')[0]), hash: text.split(':')[1] ?? '' }));

/** @returns whether all is well */
async function runVerify({ ports, output }: AdminContext, seals: string[]): Promise<boolean> {
  const known = seals.map((seal) => parseInput(sealSchema, seal, 'SEAL'));
  const { faults, ...report } = await verifyChain(ports.stores.auditChain, known);
  const ok = faults.length === 0;
  const shown = `${report.seal.seq}:${report.seal.hash}`;
  const lines = faults.map((fault) => `WRONG  ${fault}`);
  const isEmpty = report.seal.seq === 0;
  if (ok) lines.push(isEmpty ? 'ok     No event is chained.' : `ok     ${report.events} events follow from each other. Seal: ${shown}`);
  if (report.pruned > 0) lines.push(`       The ${report.pruned} before them were deleted by age.`);
  if (report.unchained > 0) lines.push(`       ${report.unchained} newer ones are not chained yet. A core does it each minute.`);
  output.answer({ ok, ...report, seal: shown, faults }, lines.join('\n'));
  return ok;
}
