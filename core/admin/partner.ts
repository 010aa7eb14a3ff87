import type { Command } from 'commander';
import { operator } from '../domain/audit.ts';
import { createPartner } from '../domain/tenancies.ts';
import type { AdminContext, Runner } from './context.ts';
import { nameSchema, parseInput } from './input.ts';

export function partnerCommands(program: Command, { withDatabase }: Runner): void {
  const partner = program.command('partner').description('resellers, who own accounts');
  partner.command('create').alias('add').argument('<name>').description('create a partner').action(withDatabase(runCreate, 'fill'));
}

async function runCreate({ ports, output }: AdminContext, name: string): Promise<void> {
  const partner = await createPartner(ports, operator, parseInput(nameSchema, name, 'NAME'));
  output.answer({ partner }, `Created the partner ${partner.name}: ${partner.id}`);
}
