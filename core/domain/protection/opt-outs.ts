import type { OptOutScope } from '#contract/protection/protection.ts';
import { auditEvent } from '../audit/audit.ts';
import { scopeFor } from '../directory/scope.ts';
import type { Actor, RuleScope, SignedInCaller, Viewer } from '../model.ts';
import type { Ports } from '../ports.ts';
import { Problem } from '../problem.ts';
import { requireAdministrator } from './do-not-call.ts';
import { findVisible } from './rules.ts';

/** Returns whether opt-outs during the account's calls apply to this account only or to all of its partner's accounts. */
export async function showOptOuts(ports: Ports, viewer: Viewer, accountId: string): Promise<OptOutScope> {
  const account = await findVisible(ports, viewer, { scope: 'account', id: accountId });
  return ports.stores.protection.optOutScope(account.id);
}

export async function setOptOutsInScope(
  ports: Ports,
  { viewer, actor }: SignedInCaller,
  accountId: string,
  listedFor: OptOutScope,
): Promise<void> {
  requireAdministrator(viewer, 'change the scope of opt-outs');
  const account = await findVisible(ports, viewer, { scope: 'account', id: accountId });
  // Someone who sees only one account can't decide for all of the partner's accounts.
  if (scopeFor(viewer).campaigns.kind === 'account')
    throw new Problem('forbidden', "Only users who can see all of the partner's accounts can change the scope of opt-outs.");
  await setOptOuts(ports, actor, account, listedFor);
}

/** Changes future opt-outs. The entries that are already on a list stay there. */
export async function setOptOuts(ports: Ports, actor: Actor, { id, name, owner }: RuleScope, listedFor: OptOutScope): Promise<void> {
  if ((await ports.stores.protection.optOutScope(id)) === listedFor) return;
  const event = auditEvent(ports, actor, 'account.changed', { kind: 'account', id, name }, owner);
  const detail = listedFor === 'partner' ? "opt-outs apply to all of the partner's accounts" : 'opt-outs apply only to this account';
  await ports.stores.protection.setOptOutScope(id, listedFor, { ...event, detail });
}
