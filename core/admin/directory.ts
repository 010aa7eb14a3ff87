import { type Command, Option } from 'commander';
import { type OptOutScope, optOutScopes, type ProtectionScope, protectionScopes } from '#contract/protection/protection.ts';
import { createAccount, createCampaign, createPartner, deleteManaged } from '../domain/directory/directory.ts';
import { setOptOuts } from '../domain/protection/rules.ts';
import { type AdminContext, exampleId, nameSchema, parseInput, type Runner, shortName, table, withExamples } from './command-line.ts';
import { findScope } from './rules.ts';

/** @property empty what it can't have if it's to be deleted @property owner what it belongs to */
const kinds: Record<ProtectionScope, { description: string; example: string; owner: 'partner' | 'account' | null; empty: string }> = {
  partner: {
    ...{ description: 'manage partners: resellers that own accounts', example: 'Northwind Voice', owner: null },
    empty: 'no accounts, users, API keys or do-not-call numbers',
  },
  account: {
    ...{
      description: 'manage accounts: customers that belong to a partner and own campaigns',
      example: 'Harbour Dental',
      owner: 'partner',
    },
    empty: 'no campaigns, users, API keys or do-not-call numbers',
  },
  campaign: {
    ...{ description: 'manage the campaigns of an account', example: 'Appointment reminders', owner: 'account' },
    empty: 'no calls',
  },
};

export function directoryCommands(program: Command, runner: Runner): void {
  const { withDatabase } = runner;
  for (const kind of protectionScopes) {
    const { description, example, owner, empty } = kinds[kind];
    const a = kind === 'account' ? 'an account' : `a ${kind}`;
    const parent = program.command(kind).description(description);
    const create = parent.command('create <name>').alias('add').description(`create ${a}`);
    if (owner) create.requiredOption(`--${owner} <id>`, `ID of the ${owner} that owns the ${kind}`);
    withExamples(create, `${kind} create "${example}"${owner ? ` --${owner} ${exampleId}` : ''}`).action(
      withDatabase((context, name: string, options: OwnerOptions) => runCreate(context, kind, name, options), 'fill'),
    );
    if (kind === 'account') optOutsCommand(parent, runner);
    const remove = parent.command('delete <id>').description(`delete ${a} that has ${empty}`);
    withExamples(remove, `${kind} delete ${exampleId}`).action(withDatabase((context, id: string) => runDelete(context, kind, id)));
    const list = parent.command('list').description(`list all ${kind}s`);
    withExamples(list, `${kind} list`, `--json ${kind} list`).action(withDatabase((context) => runList(context, kind)));
  }
}

type OwnerOptions = { partner?: string; account?: string };

async function runCreate(context: AdminContext, kind: ProtectionScope, text: string, options: OwnerOptions): Promise<void> {
  const { ports, caller, output } = context;
  const { owner } = kinds[kind];
  const ownerId = owner === null ? '' : (await findScope(ports, options, [owner])).id;
  const create = { partner: createPartner, account: createAccount, campaign: createCampaign }[kind];
  const { id, name } = await create(ports, caller, parseInput(nameSchema, text, 'NAME'), ownerId);
  output.answer({ [kind]: { id, name, ...(owner && { [`${owner}Id`]: ownerId }) } }, `Created ${kind} ${name}: ${id}`);
}

async function runList({ ports, output }: AdminContext, kind: ProtectionScope): Promise<void> {
  const { owner: ownerKind } = kinds[kind];
  const all = await ports.stores.directory.all(kind);
  const json = all.map(({ owner, ...entity }) => ({ ...entity, ...(owner && { [`${ownerKind}Id`]: owner.id }) }));
  const rows = all.map(({ id, name, owner, externalId }) => [
    id,
    shortName(name),
    ...(owner ? [shortName(owner.name)] : []),
    externalId ?? '',
  ]);
  const head = ['ID', 'NAME', ...(ownerKind ? [ownerKind.toUpperCase()] : []), 'EXTERNAL ID'];
  output.answer({ [`${kind}s`]: json }, table(head, rows));
}

async function runDelete({ ports, caller, output }: AdminContext, kind: ProtectionScope, id: string): Promise<void> {
  await findScope(ports, { [kind]: id }, [kind]);
  const { name } = await deleteManaged(ports, caller, kind, id);
  output.answer({ deleted: { kind, id, name } }, `Deleted ${kind} ${name}: ${id}`);
}

function optOutsCommand(account: Command, { withDatabase }: Runner): void {
  const optOuts = account
    .command('opt-outs <id>')
    .addOption(new Option('--for <scope>', 'where an opt-out applies').choices(optOutScopes).makeOptionMandatory())
    .description(
      "set whether opt-outs during the account's calls apply to this account only (the default) or to all of its partner's accounts",
    );
  withExamples(optOuts, `account opt-outs ${exampleId} --for partner`).action(withDatabase(runOptOuts));
}

async function runOptOuts({ ports, caller, output }: AdminContext, id: string, options: { for: OptOutScope }): Promise<void> {
  const account = await findScope(ports, { account: id }, ['account']);
  await setOptOuts(ports, caller, account.id, options.for);
  const who = options.for === 'partner' ? 'all accounts of its partner' : 'this account only';
  output.answer({ optOuts: { listedFor: options.for } }, `Opt-outs during calls from account ${account.name} now apply to ${who}.`);
}
