import type { Named } from '#contract/console/common.ts';
import { limits } from '#contract/limits.ts';
import { auditEvent } from '../audit/audit.ts';
import type { Account, Actor, Campaign, ListFilter, Tenancy, Viewer } from '../model.ts';
import { type Page, rowsForDirectoryPage, toDirectoryPage } from '../paging.ts';
import type { Ports } from '../ports.ts';
import { Problem } from '../problem.ts';
import { scopeFor } from './scope.ts';

/** Lists the accounts whose campaigns the viewer can see. The form for a new user shows them. */
export async function listAccounts(ports: Ports, viewer: Viewer, filter: ListFilter): Promise<Page<Named>> {
  return toDirectoryPage(
    await ports.stores.tenancies.listAccounts(scopeFor(viewer).campaigns, filter, rowsForDirectoryPage),
    ({ id }) => id,
  );
}

export async function listCampaigns(ports: Ports, viewer: Viewer, filter: ListFilter): Promise<Page<Campaign>> {
  return toDirectoryPage(
    await ports.stores.tenancies.listCampaigns(scopeFor(viewer).campaigns, filter, rowsForDirectoryPage),
    ({ id }) => id,
  );
}

export async function searchTenancies(ports: Ports, viewer: Viewer, text: string): Promise<Tenancy[]> {
  if (viewer.userType !== 'staff') throw new Problem('forbidden', 'Only service staff can select an account or partner.');
  return ports.stores.tenancies.search(text, limits.tenancies);
}

export async function createPartner(ports: Ports, actor: Actor, name: string): Promise<Named> {
  const { partner, event } = newPartner(ports, actor, name);
  await ports.stores.tenancies.createPartner(partner, event);
  return partner;
}

export async function createAccount(ports: Ports, actor: Actor, name: string, partnerId: string): Promise<Account> {
  const { account, event } = newAccount(ports, actor, name, partnerId);
  await ports.stores.tenancies.createAccount(account, event);
  return account;
}

export async function createCampaign(ports: Ports, actor: Actor, name: string, accountId: string) {
  const account = await ports.stores.tenancies.findAccount(accountId);
  if (!account) throw new Problem('not-found', `The account ${accountId} doesn't exist.`);
  const { campaign, event } = newCampaign(ports, actor, name, account);
  await ports.stores.tenancies.createCampaign(campaign, event);
  return campaign;
}

export function newPartner(ports: Ports, actor: Actor, name: string) {
  const partner = { id: ports.randomness.id(), name };
  const owningScope = { accountId: null, partnerId: partner.id };
  return { partner, event: auditEvent(ports, actor, 'partner.added', { kind: 'partner', ...partner }, owningScope) };
}

export function newAccount(ports: Ports, actor: Actor, name: string, partnerId: string) {
  const account: Account = { id: ports.randomness.id(), name, partnerId };
  const owningScope = { accountId: account.id, partnerId };
  return { account, event: auditEvent(ports, actor, 'account.added', { kind: 'account', id: account.id, name }, owningScope) };
}

export function newCampaign(ports: Ports, actor: Actor, name: string, { id: accountId, partnerId }: Pick<Account, 'id' | 'partnerId'>) {
  const campaign = { id: ports.randomness.id(), name, accountId };
  const owningScope = { accountId, partnerId };
  return { campaign, event: auditEvent(ports, actor, 'campaign.added', { kind: 'campaign', id: campaign.id, name }, owningScope) };
}
