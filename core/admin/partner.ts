import type { Command } from 'commander';
import { createPartner } from '../domain/directory/directory.ts';
import { deleteCommand } from './directory.ts';
import type { AdminContext, Runner } from './program/context.ts';
import { withExamples } from './program/help.ts';
import { nameSchema, parseInput } from './program/input.ts';
import { shortName, table } from './program/table.ts';

export function partnerCommands(program: Command, { withDatabase }: Runner): void {
  const partner = program.command('partner').description('manage partners: resellers that own accounts');
  const create = partner.command('create').alias('add').argument('<name>').description('create a partner');
  withExamples(create, 'partner create "Northwind Voice"').action(withDatabase(runCreate, 'fill'));
  deleteCommand(partner, 'partner', '01a20138-3d19-7da7-9907-3a9fb48fa32a', withDatabase);
  const list = partner.command('list').description('list all partners');
  withExamples(list, 'partner list', '--json partner list').action(withDatabase(runList));
}

async function runCreate({ ports, actor, output }: AdminContext, name: string): Promise<void> {
  const partner = await createPartner(ports, actor, parseInput(nameSchema, name, 'NAME'));
  output.answer({ partner }, `Created partner ${partner.name}: ${partner.id}`);
}

async function runList({ ports, output }: AdminContext): Promise<void> {
  const partners = await ports.stores.tenancies.allPartners();
  const rows = partners.map(({ id, name, externalId }) => [id, shortName(name), externalId ?? '']);
  output.answer({ partners }, table(['ID', 'NAME', 'EXTERNAL ID'], rows));
}
