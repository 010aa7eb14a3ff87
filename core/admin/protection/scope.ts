import type { Command } from 'commander';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import type { RuleScope } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';

export type ScopeOptions = { account?: string; partner?: string; campaign?: string };

/** Adds the options that select whose list or rules a command is about. */
export function withScope(command: Command, kinds: readonly ProtectionScope[]): Command {
  for (const kind of kinds) command.option(`--${kind} <id>`, `ID of the ${kind}`);
  return command;
}

/** Finds the scope that the options select. @throws Problem `invalid` unless there's exactly one option, or `not-found` */
export async function findScope(ports: Ports, options: ScopeOptions, kinds: readonly ProtectionScope[]): Promise<RuleScope> {
  const chosen = kinds.filter((kind) => options[kind] !== undefined);
  const [kind] = chosen;
  if (kind === undefined || chosen.length > 1)
    throw new Problem('invalid', `Specify exactly one of ${kinds.map((each) => `--${each}`).join(', ')}.`);
  const id = options[kind] ?? '';
  const scope = await ports.stores.protection.findScope({ kind: 'all' }, kind, id);
  if (!scope) throw new Problem('not-found', `The ${kind} ${id} doesn't exist.`);
  return scope;
}
