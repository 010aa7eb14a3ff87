import { isDeepStrictEqual } from 'node:util';
import type { Named } from '#contract/console/common.ts';
import type { ChangeCampaign, Setup } from '#contract/console/directory.ts';
import { limits } from '#contract/limits.ts';
import { counted } from '#contract/text/count.ts';
import { auditEvent, describeChange } from '../audit/audit.ts';
import type { Actor, AuditEvent, Caller, Digest, OwningScope, SignedInCaller, Tenancy, Viewer } from '../model.ts';
import { idCursors, type Page, readPage, toId } from '../paging.ts';
import type { Campaign, DirectoryKind, ListFilter, Managed, ManagedAccount, ManagedCampaign, ManagedPartner, Ports } from '../ports.ts';
import { describeMissing, invalidField, notFound, Problem } from '../problem.ts';
import { selectTenancy } from '../sign-in/sessions.ts';
import { type DirectoryAccess, scopeFor } from './scope.ts';

/** Lists the accounts whose campaigns the viewer can see, for the form for a new user. */
export function listAccounts({ stores }: Ports, viewer: Viewer, filter: ListFilter): Promise<Page<Named>> {
  const read = async (own: ListFilter, rows: number) =>
    (await stores.directory.list('account', scopeFor(viewer).campaigns, null, own, rows)).map(toNamed);
  return listPage('accounts', filter, read);
}

export function listCampaigns({ stores }: Ports, viewer: Viewer, filter: ListFilter): Promise<Page<Campaign>> {
  return listPage('campaigns', filter, async (own, rows) => {
    const campaigns = await stores.directory.list('campaign', scopeFor(viewer).campaigns, null, own, rows);
    return campaigns.map(({ id, name, account }) => ({ id, name, account }));
  });
}

export async function searchTenancies(ports: Ports, viewer: Viewer, text: string): Promise<Tenancy[]> {
  if (viewer.userType !== 'staff') throw new Problem('forbidden', 'Only service staff can select an account or partner.');
  return ports.stores.directory.searchTenancies(text, limits.tenancies);
}

/** @param ownerId lists only the accounts of this partner, or the campaigns of this account */
export async function listManaged<Kind extends DirectoryKind>(
  { stores }: Ports,
  viewer: Viewer,
  kind: Kind,
  ownerId: string | null,
  filter: ListFilter,
): Promise<Page<Managed[Kind]>> {
  const access = accessTo(kind, viewer);
  return listPage(`${kind}s`, filter, (own, rows) => stores.directory.list(kind, access, ownerId, own, rows));
}

/**
 * Reads a page in the order of the IDs, because an entry that's renamed between two pages would otherwise be on both or on neither, and then
 * sorts it by name.
 */
async function listPage<Item extends Entry>(
  kind: string,
  { search, cursor }: ListFilter,
  read: (filter: ListFilter, rows: number) => Promise<readonly Item[]>,
): Promise<Page<Item>> {
  const page = { cursor, size: limits.directoryPage };
  const { items, nextCursor } = await readPage(idCursors(kind), page, (after, rows) => read({ search, cursor: after }, rows), toId);
  return { items: items.toSorted(compare), nextCursor };
}

type Entry = Named & { partner?: Named; account?: Named };
const names = new Intl.Collator('en', { numeric: true });

function compare(a: Entry, b: Entry): number {
  const compareNames = (one?: Named, other?: Named) => names.compare(one?.name ?? '', other?.name ?? '');
  return compareNames(a.partner, b.partner) || compareNames(a.account, b.account) || compareNames(a, b) || (a.id < b.id ? -1 : 1);
}

export async function setUp(ports: Ports, sessionId: Digest, { viewer, actor }: SignedInCaller, names: Setup) {
  requireStaff(viewer);
  const [partner, partnerAdded] = add(ports, actor, 'partner', names.partner);
  const [account, accountAdded] = add(ports, actor, 'account', names.account, { partnerId: partner.id });
  const [campaign, campaignAdded] = add(ports, actor, 'campaign', names.campaign, { accountId: account.id, partnerId: partner.id });
  const owned = [
    { ...account, partnerId: partner.id },
    { ...campaign, accountId: account.id },
  ] as const;
  const isFirst = await ports.stores.directory.setUp(partner, ...owned, [partnerAdded, accountAdded, campaignAdded]);
  if (!isFirst) throw new Problem('conflict', 'A partner already exists. To add accounts and campaigns, use the directory.');
  await selectTenancy(ports, sessionId, viewer, { kind: 'account', id: account.id });
  return { partner, account, campaign };
}

export async function createPartner(ports: Ports, { viewer, actor }: Caller, name: string): Promise<ManagedPartner> {
  requireStaff(viewer);
  const [partner, event] = add(ports, actor, 'partner', name);
  await ports.stores.directory.create('partner', partner, null, event);
  return { ...partner, accounts: 0 };
}

export async function createAccount(ports: Ports, { viewer, actor }: Caller, name: string, partnerId: string): Promise<ManagedAccount> {
  const partner = await ports.stores.directory.find('partner', toAccess(viewer), partnerId);
  if (!partner) throw notInScope('partnerId', 'partner', viewer);
  const [account, event] = add(ports, actor, 'account', name, { partnerId });
  await ports.stores.directory.create('account', account, partnerId, event);
  return { ...account, partner: toNamed(partner), campaigns: 0 };
}

export async function createCampaign(ports: Ports, { viewer, actor }: Caller, name: string, accountId: string): Promise<ManagedCampaign> {
  const account = await ports.stores.directory.find('account', toAccess(viewer), accountId);
  if (!account) throw notInScope('accountId', 'account', viewer);
  const [campaign, event] = add(ports, actor, 'campaign', name, { accountId, partnerId: account.partner.id });
  await ports.stores.directory.create('campaign', campaign, accountId, event);
  return { ...campaign, account: toNamed(account), partner: account.partner, settings: {} };
}

/** What isn't in `owner` is the entity itself. */
function add(ports: Ports, actor: Actor, kind: DirectoryKind, name: string, owner: Partial<OwningScope> = {}): [Named, AuditEvent] {
  const entity = { id: ports.randomness.id(), name };
  const owningScope = { accountId: kind === 'account' ? entity.id : null, partnerId: entity.id, ...owner };
  return [entity, auditEvent(ports, actor, `${kind}.added`, { kind, ...entity }, owningScope)];
}

async function findManaged<Kind extends DirectoryKind>({ stores }: Ports, viewer: Caller['viewer'], kind: Kind, id: string) {
  const managed = await stores.directory.find(kind, accessTo(kind, viewer), id);
  if (!managed) throw notFound(kind, viewer);
  return managed;
}

const toScope: { readonly [Kind in DirectoryKind]: (managed: Managed[Kind]) => OwningScope } = {
  partner: ({ id }) => ({ accountId: null, partnerId: id }),
  account: ({ id, partner }) => ({ accountId: id, partnerId: partner.id }),
  campaign: ({ account, partner }) => ({ accountId: account.id, partnerId: partner.id }),
};

/** Changes a name, or a campaign's settings for the provider. If nothing changes, records no event. */
export async function changeManaged<Kind extends DirectoryKind>(
  ports: Ports,
  { viewer, actor }: Caller,
  kind: Kind,
  id: string,
  { name, settings }: ChangeCampaign,
): Promise<Managed[Kind]> {
  const managed = await findManaged(ports, viewer, kind, id);
  const changed = { ...managed, name: name ?? managed.name, ...(settings && { settings }) };
  const before = 'settings' in managed ? managed.settings : {};
  const changesSettings = settings !== undefined && !isDeepStrictEqual({ ...settings }, { ...before });
  if (changed.name === managed.name && !changesSettings) return managed;
  // The event names the settings but doesn't contain their values, which may be secret.
  const settingNames = changesSettings ? `settings: ${Object.keys(settings).join(', ') || 'none'}` : undefined;
  const detail = [describeChange({ name: [managed.name, changed.name] }), settingNames].filter((part) => part !== undefined).join('; ');
  const event = auditEvent(ports, actor, `${kind}.changed`, { kind, id, name: changed.name }, toScope[kind](managed));
  if (!(await ports.stores.directory.change(kind, changed, { ...event, detail }))) throw notFound(kind, viewer);
  return changed;
}

/** @throws Problem `conflict` that says what belongs to it, or `not-found` */
export async function deleteManaged<Kind extends DirectoryKind>(
  ports: Ports,
  { viewer, actor }: Caller,
  kind: Kind,
  id: string,
): Promise<Managed[Kind]> {
  const managed = await findManaged(ports, viewer, kind, id);
  // No one could see an event in the scope of a partner that no longer exists.
  const owningScope = kind === 'partner' ? null : toScope[kind](managed);
  const event = auditEvent(ports, actor, `${kind}.deleted`, { kind, id, name: managed.name }, owningScope);
  const belonging = await ports.stores.directory.delete(kind, id, event);
  if (!belonging) throw notFound(kind, viewer);
  if (belonging.length === 0) return managed;
  const things = belonging.map(({ noun, count }) => (count === null ? `${noun}s` : counted(count, noun)));
  const list = new Intl.ListFormat('en').format(things);
  throw new Problem('conflict', `${managed.name} can't be deleted, because it has ${list}.`);
}

/** @throws Problem `forbidden` for viewers who can't manage accounts */
function toAccess(viewer: Caller['viewer']): DirectoryAccess {
  const { directory } = scopeFor(viewer);
  if (directory.kind === 'nothing')
    throw new Problem('forbidden', "Only service staff and partner users who aren't limited to one account can manage accounts.");
  return directory;
}

function accessTo(kind: DirectoryKind, viewer: Caller['viewer']): DirectoryAccess {
  return kind === 'partner' ? requireStaff(viewer) : toAccess(viewer);
}

function requireStaff(viewer: Caller['viewer']): DirectoryAccess {
  const { directory } = scopeFor(viewer);
  if (directory.kind !== 'all') throw new Problem('forbidden', 'Only service staff can manage partners.');
  return directory;
}

export function notInScope(path: string, kind: DirectoryKind, viewer: Caller['viewer'] | null = null): Problem {
  return invalidField(path, describeMissing(kind, viewer));
}

function toNamed({ id, name }: Named): Named {
  return { id, name };
}
