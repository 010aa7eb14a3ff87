import type { Named } from '#contract/console/common.ts';
import type { CreatedSetupView, Setup } from '#contract/console/directory.ts';
import { limits } from '#contract/limits.ts';
import { counted } from '#contract/text/count.ts';
import { auditEvent } from '../audit/audit.ts';
import type {
  Account,
  Actor,
  Campaign,
  Digest,
  ListFilter,
  ManagedAccount,
  ManagedCampaign,
  ManagedPartner,
  OwningScope,
  SignedInCaller,
  Tenancy,
  Viewer,
} from '../model.ts';
import { type Page, rowsForDirectoryPage, toDirectoryPage } from '../paging.ts';
import type { Ports } from '../ports.ts';
import { invalidField, Problem } from '../problem.ts';
import { selectTenancy } from '../sign-in/sessions.ts';
import { type DirectoryAccess, scopeFor } from './scope.ts';

/** Creates the first partner, account and campaign together, and selects the account. */
export async function setUp(ports: Ports, sessionId: Digest, { viewer, actor }: SignedInCaller, names: Setup): Promise<CreatedSetupView> {
  requireStaff(viewer);
  const { partner, event: partnerAdded } = newPartner(ports, actor, names.partner);
  const { account, event: accountAdded } = newAccount(ports, actor, names.account, partner.id);
  const { campaign, event: campaignAdded } = newCampaign(ports, actor, names.campaign, account);
  const isFirst = await ports.stores.directory.setUp(partner, account, campaign, [partnerAdded, accountAdded, campaignAdded]);
  if (!isFirst) throw new Problem('conflict', 'A partner already exists. To add accounts and campaigns, use the directory.');
  await selectTenancy(ports, sessionId, viewer, { kind: 'account', id: account.id });
  return {
    partner,
    account: { id: account.id, name: account.name },
    campaign: { id: campaign.id, name: campaign.name },
  };
}

export async function listManagedPartners(ports: Ports, viewer: Viewer, filter: ListFilter): Promise<Page<ManagedPartner>> {
  const access = requireStaff(viewer);
  return toDirectoryPage(await ports.stores.directory.partners(access, filter, rowsForDirectoryPage), getId);
}

export async function listManagedAccounts(
  ports: Ports,
  viewer: Viewer,
  partnerId: string | null,
  filter: ListFilter,
): Promise<Page<ManagedAccount>> {
  const access = toAccess(viewer);
  return toDirectoryPage(await ports.stores.directory.accounts(access, partnerId, filter, rowsForDirectoryPage), getId);
}

export async function listManagedCampaigns(
  ports: Ports,
  viewer: Viewer,
  accountId: string | null,
  filter: ListFilter,
): Promise<Page<ManagedCampaign>> {
  const access = toAccess(viewer);
  return toDirectoryPage(await ports.stores.directory.campaigns(access, accountId, filter, rowsForDirectoryPage), getId);
}

export async function addPartner(ports: Ports, { viewer, actor }: SignedInCaller, name: string): Promise<ManagedPartner> {
  requireStaff(viewer);
  return { ...(await createPartner(ports, actor, name)), accounts: 0 };
}

export async function addAccount(
  ports: Ports,
  { viewer, actor }: SignedInCaller,
  name: string,
  partnerId: string,
): Promise<ManagedAccount> {
  const partner = await ports.stores.directory.findPartner(toAccess(viewer), partnerId);
  if (!partner) throw notInScope('partnerId', 'partner');
  const { id } = await createAccount(ports, actor, name, partnerId);
  return { id, name, partner: { id: partner.id, name: partner.name }, campaigns: 0 };
}

export async function addCampaign(
  ports: Ports,
  { viewer, actor }: SignedInCaller,
  name: string,
  accountId: string,
): Promise<ManagedCampaign> {
  const account = await ports.stores.directory.findAccount(toAccess(viewer), accountId);
  if (!account) throw notInScope('accountId', 'account');
  const { id } = await createCampaign(ports, actor, name, accountId);
  return { id, name, account: { id: account.id, name: account.name }, partner: account.partner };
}

export async function renamePartner(ports: Ports, { viewer, actor }: SignedInCaller, id: string, name: string): Promise<ManagedPartner> {
  const partner = await ports.stores.directory.findPartner(requireStaff(viewer), id);
  if (!partner) throw notFound('partner');
  await rename(ports, actor, 'partner', partner, name, { accountId: null, partnerId: id });
  return { ...partner, name };
}

export async function renameAccount(ports: Ports, { viewer, actor }: SignedInCaller, id: string, name: string): Promise<ManagedAccount> {
  const account = await ports.stores.directory.findAccount(toAccess(viewer), id);
  if (!account) throw notFound('account');
  await rename(ports, actor, 'account', account, name, { accountId: id, partnerId: account.partner.id });
  return { ...account, name };
}

export async function renameCampaign(ports: Ports, { viewer, actor }: SignedInCaller, id: string, name: string): Promise<ManagedCampaign> {
  const campaign = await ports.stores.directory.findCampaign(toAccess(viewer), id);
  if (!campaign) throw notFound('campaign');
  await rename(ports, actor, 'campaign', campaign, name, { accountId: campaign.account.id, partnerId: campaign.partner.id });
  return { ...campaign, name };
}

export async function deletePartner(ports: Ports, { viewer, actor }: SignedInCaller, id: string): Promise<void> {
  const partner = await ports.stores.directory.findPartner(requireStaff(viewer), id);
  if (!partner) throw notFound('partner');
  await deleteEmpty(ports, actor, 'partner', partner, null);
}

export async function deleteAccount(ports: Ports, { viewer, actor }: SignedInCaller, id: string): Promise<void> {
  const account = await ports.stores.directory.findAccount(toAccess(viewer), id);
  if (!account) throw notFound('account');
  await deleteEmpty(ports, actor, 'account', account, { accountId: id, partnerId: account.partner.id });
}

export async function deleteCampaign(ports: Ports, { viewer, actor }: SignedInCaller, id: string): Promise<void> {
  const campaign = await ports.stores.directory.findCampaign(toAccess(viewer), id);
  if (!campaign) throw notFound('campaign');
  await deleteEmpty(ports, actor, 'campaign', campaign, { accountId: campaign.account.id, partnerId: campaign.partner.id });
}

type Kind = 'partner' | 'account' | 'campaign';

/**
 * Deletes a partner, account or campaign that nothing belongs to. @throws Problem `conflict` that says what belongs to it, or `not-found`
 *
 * @param owningScope the scope of the event; null for a partner, because no one could see events in a scope that no longer exists
 */
export async function deleteEmpty(
  ports: Ports,
  actor: Actor,
  kind: Kind,
  { id, name }: Named,
  owningScope: OwningScope | null,
): Promise<void> {
  const event = auditEvent(ports, actor, `${kind}.deleted`, { kind, id, name }, owningScope);
  const belonging = await ports.stores.directory.delete(kind, id, event);
  if (!belonging) throw notFound(kind);
  if (belonging.length === 0) return;
  const things = belonging.map(({ noun, count }) => (count === null ? `${noun}s` : counted(count, noun)));
  const list = new Intl.ListFormat('en').format(things);
  throw new Problem('conflict', `${name} can't be deleted, because it has ${list}.`);
}

/** Renames a partner, account or campaign. If the name is the same, changes nothing and records no event. */
async function rename(ports: Ports, actor: Actor, kind: Kind, current: Named, name: string, owningScope: OwningScope): Promise<void> {
  if (name === current.name) return;
  const renamed = { id: current.id, name };
  const event = auditEvent(ports, actor, `${kind}.changed`, { kind, ...renamed }, owningScope);
  if (!(await ports.stores.directory.rename(kind, renamed, event))) throw notFound(kind);
}

/** Returns what the viewer can manage. @throws Problem `forbidden` for viewers who can't manage accounts */
function toAccess(viewer: Viewer): DirectoryAccess {
  const { directory } = scopeFor(viewer);
  if (directory.kind === 'nothing')
    throw new Problem('forbidden', "Only service staff and partner users who aren't limited to one account can manage accounts.");
  return directory;
}

function requireStaff(viewer: Viewer): DirectoryAccess {
  const { directory } = scopeFor(viewer);
  if (directory.kind !== 'all') throw new Problem('forbidden', 'Only service staff can manage partners.');
  return directory;
}

function notFound(kind: Kind): Problem {
  return new Problem('not-found', `This ${kind} doesn't exist, or you don't have access to it.`);
}

function notInScope(path: string, kind: Kind): Problem {
  return invalidField(path, `This ${kind} doesn't exist, or you don't have access to it.`);
}

function getId({ id }: Named): string {
  return id;
}

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
