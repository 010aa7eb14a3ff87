import { z } from 'zod';
import type { AuditAction } from '#contract/console/activity.ts';
import { userTypeSchema } from '#contract/console/common.ts';
import { limits } from '#contract/limits.ts';
import { emailSchema, lineSchema } from '#contract/text/text.ts';
import { auditEvent } from '../audit/audit.ts';
import type { Actor, OwningScope } from '../model.ts';
import type { ImportAddition, ImportedEntity, ImportKind, ImportStore, Ports } from '../ports.ts';
import { Problem } from '../problem.ts';
import { readableEmail } from './readable-email.ts';
import { makeOneTimePassword } from './users.ts';

type ImportCounts = { added: number; changed: number; unchanged: number };
export type ImportResult = Record<ImportKind, ImportCounts> & {
  /** One-time passwords of the users that were added. */
  passwords: { email: string; password: string }[];
  /** One-time passwords of users who may have been added, because a step failed without saying whether it was written. */
  uncertain: { email: string; password: string }[];
  /** The users who have another email address, type or place now, so that their sessions have ended. */
  signedOut: SignedOutUser[];
};

/** @property unlinked whether the user was linked to an identity at the provider, which may be another person's */
type SignedOutUser = { email: string | null; previousEmail: string | null; sessions: number; unlinked: boolean };

/** The number of entities per transaction. Other writers of a SQLite file wait during each one. */
const entitiesPerStep = 500;
/** Smaller, because each new user needs a password hash, and an interrupted import computes all hashes of its step before it stops. */
const usersPerStep = 25;

/** Everything counted in `soFar` was written, and is kept. */
export class ImportInterrupted extends Error {
  readonly soFar: ImportResult;

  constructor(soFar: ImportResult, cause: unknown) {
    super('The import was interrupted.', { cause });
    this.name = 'ImportInterrupted';
    this.soFar = soFar;
  }
}

/**
 * Creates and changes the entities in the file, and nothing else. Checks as much as possible before the first write, then writes in steps.
 * Importing the same file again changes nothing, or finishes an interrupted import.
 *
 * @param pause runs between two steps, so that others can write. If it throws, the import stops
 * @throws Problem if nothing was written
 * @throws ImportInterrupted if something was written, or users may have been
 */
export async function importAll(
  ports: Ports,
  imports: ImportStore,
  pause: () => Promise<void>,
  actor: Actor,
  file: ImportFile,
): Promise<ImportResult> {
  const plans = await planImport(ports, imports, file);
  const result: ImportResult = {
    partners: counts(),
    accounts: counts(),
    campaigns: counts(),
    users: counts(),
    passwords: [],
    uncertain: [],
    signedOut: [],
  };
  let hasWritten = false;
  try {
    for (const { kind, planned, unchanged } of plans) {
      result[kind].unchanged = unchanged;
      const size = kind === 'users' ? usersPerStep : entitiesPerStep;
      for (let start = 0; start < planned.length; start += size) {
        if (hasWritten) await pause();
        await writeStep(ports, imports, actor, kind, planned.slice(start, start + size), result);
        hasWritten = true;
      }
    }
    return result;
  } catch (error) {
    throw hasWritten || result.uncertain.length > 0 ? new ImportInterrupted(result, error) : error;
  }
}

async function writeStep(
  ports: Ports,
  imports: ImportStore,
  actor: Actor,
  kind: ImportKind,
  step: readonly PlannedEntity[],
  result: ImportResult,
): Promise<void> {
  const subject = singular[kind];
  const record = (entity: ImportedEntity, action: AuditAction) =>
    auditEvent(ports, actor, action, { kind: subject, id: entity.id, name: entity.name }, getOwningScope(kind, entity));
  const recordDisabling = ({ entity, isToggled }: PlannedEntity) =>
    isToggled ? record(entity, entity.disabled ? 'user.disabled' : 'user.enabled') : null;
  const added: ImportAddition[] = [];
  const passwords: ImportResult['passwords'] = [];
  for (const planned of step.filter(({ verb }) => verb === 'added')) {
    // Hash before the transaction, because hashing is slow.
    const oneTimePassword = kind === 'users' ? await makeOneTimePassword(ports) : null;
    if (oneTimePassword && planned.entity.email !== null)
      passwords.push({ email: readableEmail(planned.entity.email), password: oneTimePassword.password });
    const event = record(planned.entity, `${subject}.added`);
    added.push({ entity: planned.entity, password: oneTimePassword?.stored ?? null, event, disabling: recordDisabling(planned) });
  }
  const changed = step
    .filter(({ verb }) => verb !== 'added')
    .map((planned) => {
      const event = planned.verb && record(planned.entity, `${subject}.changed`);
      const unlinking = planned.previousEmail === null ? null : record(planned.entity, 'user.unlinked');
      return { entity: planned.entity, event, unlinking, disabling: recordDisabling(planned) };
    });
  const ended = await imports.write(kind, { added, changed }).catch((error) => {
    // A refusal means that nothing was written. After any other error, such as a lost connection, the users may exist.
    if (!(error instanceof Problem) || error.code === 'unavailable') result.uncertain.push(...passwords);
    throw error;
  });
  result[kind].added += added.length;
  result[kind].changed += changed.length;
  result.passwords.push(...passwords);
  for (const { entity, previousEmail } of step) {
    const { sessions, unlinked } = ended.get(entity.id) ?? { sessions: 0, unlinked: false };
    if (sessions > 0 || unlinked || previousEmail !== null)
      result.signedOut.push({ email: readableEmail(entity.email), previousEmail: readableEmail(previousEmail), sessions, unlinked });
  }
}

function getOwningScope(kind: ImportKind, entity: ImportedEntity): OwningScope | null {
  if (kind === 'partners') return { accountId: null, partnerId: entity.id };
  if (entity.partnerId === null) return null;
  return { accountId: kind === 'accounts' ? entity.id : entity.accountId, partnerId: entity.partnerId };
}

function counts(): ImportCounts {
  return { added: 0, changed: 0, unchanged: 0 };
}

const singular = { partners: 'partner', accounts: 'account', campaigns: 'campaign', users: 'user' } as const;

/**
 * An entity as it will be after the import.
 *
 * @property verb null if a user is only disabled or enabled, as `isToggled` says
 * @property previousEmail null unless it changes
 */
type PlannedEntity = {
  entity: ImportedEntity;
  verb: 'added' | 'changed' | null;
  isToggled: boolean;
  previousEmail: string | null;
};

type KindPlan = { kind: ImportKind; planned: PlannedEntity[]; unchanged: number };

type RequestedEntity = Omit<ImportedEntity, 'id'>;
type Entities = ReadonlyMap<string, ImportedEntity>;

/** Has the file's entities by external ID: in the database before the import, and after it. */
type CheckedKind = KindPlan & { before: Entities; after: Entities };

/** @throws Problem `invalid` */
type Lookup = (path: string, externalId: string) => ImportedEntity;

const noFields = { partnerId: null, accountId: null, email: null, userType: null, disabled: null };

/** Checks a whole file against itself and the database. @throws Problem `invalid` or `conflict` */
async function planImport(ports: Ports, imports: ImportStore, file: ImportFile): Promise<KindPlan[]> {
  for (const [kind, entities] of Object.entries(file)) refuseRepeats(kind, 'externalId', entities);
  refuseRepeats('users', 'email', file.users);
  const plan = (kind: ImportKind, requested: RequestedEntity[]) => planKind(ports, imports, kind, requested);

  const wantedPartners = file.partners.map((partner) => ({ ...noFields, ...partner }));
  const partners = await plan('partners', wantedPartners);
  const referencedPartners = [...file.accounts, ...file.users].map(({ partner }) => partner);
  const findPartner = await lookupIn(imports, partners, referencedPartners);

  const wantedAccounts = file.accounts.map(({ partner, ...account }, index) => {
    return { ...noFields, ...account, partnerId: findPartner(`accounts.${index}.partner`, partner).id };
  });
  const accounts = await plan('accounts', wantedAccounts);
  const referencedAccounts = [...file.campaigns, ...file.users].map(({ account }) => account);
  const findAccount = await lookupIn(imports, accounts, referencedAccounts);

  const wantedCampaigns = file.campaigns.map(({ account, ...campaign }, index) => {
    const { id, partnerId } = findAccount(`campaigns.${index}.account`, account);
    return { ...noFields, ...campaign, accountId: id, partnerId };
  });
  const campaigns = await plan('campaigns', wantedCampaigns);

  const wantedUsers = file.users.map((user, index) => toRequestedUser(user, `users.${index}`, findPartner, findAccount));
  const users = await plan('users', wantedUsers);
  await refuseTakenEmails(imports, users);
  return [partners, accounts, campaigns, users];
}

function refuseRepeats<Field extends 'externalId' | 'email'>(kind: string, field: Field, entities: readonly Record<Field, string>[]): void {
  const seen = new Set<string>();
  for (const [index, entity] of entities.entries()) {
    if (seen.has(entity[field])) {
      const repeated = field === 'email' ? readableEmail(entity[field]) : entity[field];
      throw invalidAt(`${kind}.${index}.${field}`, `Duplicate ${field}: ${repeated}.`);
    }
    seen.add(entity[field]);
  }
}

async function planKind(ports: Ports, imports: ImportStore, kind: ImportKind, requested: readonly RequestedEntity[]): Promise<CheckedKind> {
  const externalIds = requested.map(({ externalId }) => externalId);
  const before = await imports.find(kind, externalIds);
  const checked = requested.map((want, index) => {
    const existing = before.get(want.externalId);
    const disabled = want.disabled ?? existing?.disabled ?? null;
    const entity = { ...want, id: existing?.id ?? ports.randomness.id(), disabled };
    if (existing) refuseMove(kind, index, existing, entity);
    return toPlanned(existing, entity);
  });
  const planned = checked.filter(({ verb, isToggled }) => verb !== null || isToggled);
  const after = new Map(checked.map(({ entity }) => [entity.externalId, entity]));
  return { kind, planned, unchanged: checked.length - planned.length, before, after };
}

function toPlanned(existing: ImportedEntity | undefined, entity: ImportedEntity): PlannedEntity {
  const isToggled = (entity.disabled ?? false) !== (existing?.disabled ?? false);
  if (!existing) return { entity, verb: 'added', isToggled, previousEmail: null };
  const previousEmail = existing.email === entity.email ? null : existing.email;
  return { entity, verb: isSame(existing, entity) ? null : 'changed', isToggled, previousEmail };
}

function refuseMove(kind: ImportKind, index: number, existing: ImportedEntity, entity: ImportedEntity): void {
  const moves = existing.partnerId !== entity.partnerId || existing.accountId !== entity.accountId;
  if (moves && kind !== 'users')
    throw invalidAt(`${kind}.${index}`, `The ${singular[kind]} ${entity.externalId} already belongs elsewhere. Only users can be moved.`);
}

/** Whether nothing changes, apart from whether a user is disabled. */
function isSame(existing: ImportedEntity, requested: ImportedEntity): boolean {
  const fields = ['name', 'partnerId', 'accountId', 'email', 'userType'] as const;
  return fields.every((field) => existing[field] === requested[field]);
}

/** Looks references up in the file, then in the database. */
async function lookupIn(imports: ImportStore, { kind, after }: CheckedKind, externalIds: readonly (string | undefined)[]): Promise<Lookup> {
  const elsewhere = externalIds.filter((externalId) => externalId !== undefined).filter((externalId) => !after.has(externalId));
  const existing = await imports.find(kind, [...new Set(elsewhere)]);
  return (path, externalId) => {
    const entity = after.get(externalId) ?? existing.get(externalId);
    if (!entity) throw invalidAt(path, `No ${singular[kind]} has the externalId ${externalId}.`);
    return entity;
  };
}

function toRequestedUser(
  { partner, account, ...user }: ImportFile['users'][number],
  path: string,
  findPartner: Lookup,
  findAccount: Lookup,
): RequestedEntity {
  const isComplete = { account: account && !partner, partner, staff: !partner && !account }[user.userType];
  if (!isComplete) {
    throw invalidAt(
      path,
      'An account user needs an account, a partner user needs a partner (and may be limited to one of its accounts), and staff must have neither.',
    );
  }
  const ofAccount = account === undefined ? null : findAccount(`${path}.account`, account);
  const partnerId = partner === undefined ? (ofAccount?.partnerId ?? null) : findPartner(`${path}.partner`, partner).id;
  if (ofAccount && ofAccount.partnerId !== partnerId) {
    throw invalidAt(`${path}.account`, `The account ${account} doesn't belong to the partner ${partner}.`);
  }
  return { ...user, accountId: ofAccount?.id ?? null, partnerId, disabled: user.disabled ?? null };
}

/** Checks the users in the order of the file. If a user's address changes, a user further down can have the old one. */
async function refuseTakenEmails(imports: ImportStore, { before, after }: CheckedKind): Promise<void> {
  const users = [...after.values()];
  const owners = await imports.findEmails(users.map(({ email }) => email).filter((email) => email !== null));
  for (const { externalId, email } of users) {
    if (email === null) continue;
    if (owners.has(email) && owners.get(email) !== externalId) {
      throw new Problem('conflict', `Another user already has the email address ${readableEmail(email)}.`);
    }
    const old = before.get(externalId)?.email ?? null;
    if (old !== null) owners.delete(old);
  }
}

function invalidAt(path: string, message: string): Problem {
  return new Problem('invalid', `${path}: ${message}`);
}

const externalIdSchema = lineSchema(limits.requestId);
const nameSchema = lineSchema(limits.name);

/** Partners, accounts, campaigns and users in one file. `externalId` is the ID of each in another system. */
export const importFileSchema = z.strictObject({
  partners: z.array(z.strictObject({ externalId: externalIdSchema, name: nameSchema })).default([]),
  accounts: z.array(z.strictObject({ externalId: externalIdSchema, name: nameSchema, partner: externalIdSchema })).default([]),
  campaigns: z.array(z.strictObject({ externalId: externalIdSchema, name: nameSchema, account: externalIdSchema })).default([]),
  users: z
    .array(
      z.strictObject({
        externalId: externalIdSchema,
        email: emailSchema,
        name: nameSchema,
        userType: userTypeSchema,
        account: externalIdSchema.optional(),
        partner: externalIdSchema.optional(),
        disabled: z.boolean().optional(),
      }),
    )
    .default([]),
});
export type ImportFile = z.output<typeof importFileSchema>;
