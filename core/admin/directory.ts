import type { Command } from 'commander';
import { deleteEmpty } from '../domain/directory/directory.ts';
import { Problem } from '../domain/problem.ts';
import type { AdminContext, Runner } from './program/context.ts';
import { withExamples } from './program/help.ts';

type Kind = 'partner' | 'account' | 'campaign';

const condition: Readonly<Record<Kind, string>> = {
  partner: 'no accounts, users, API keys or do-not-call numbers',
  account: 'no campaigns, users, API keys or do-not-call numbers',
  campaign: 'no calls',
};

/** Adds the command that deletes a partner, account or campaign. */
export function deleteCommand(parent: Command, kind: Kind, exampleId: string, withDatabase: Runner['withDatabase']): void {
  const command = parent
    .command('delete')
    .argument('<id>')
    .description(`delete ${kind === 'account' ? 'an' : 'a'} ${kind} that has ${condition[kind]}`);
  withExamples(command, `${kind} delete ${exampleId}`).action(
    withDatabase((context: AdminContext, id: string) => runDelete(context, kind, id)),
  );
}

async function runDelete({ ports, actor, output }: AdminContext, kind: Kind, id: string): Promise<void> {
  const { directory } = ports.stores;
  const all = { kind: 'all' } as const;
  const partner = kind === 'partner' ? await directory.findPartner(all, id) : null;
  const account = kind === 'account' ? await directory.findAccount(all, id) : null;
  const campaign = kind === 'campaign' ? await directory.findCampaign(all, id) : null;
  const entry = partner ?? account ?? campaign;
  if (!entry) throw new Problem('not-found', `The ${kind} ${id} doesn't exist.`);
  const owner = account ? { accountId: id, partnerId: account.partner.id } : null;
  const scope = campaign ? { accountId: campaign.account.id, partnerId: campaign.partner.id } : owner;
  await deleteEmpty(ports, actor, kind, entry, scope);
  output.answer({ deleted: { kind, id, name: entry.name } }, `Deleted ${kind} ${entry.name}: ${id}`);
}
