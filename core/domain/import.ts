import { z } from 'zod';
import { userTypeSchema } from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import { emailSchema, lineSchema } from '#contract/text.ts';
import { auditEvent } from './audit.ts';
import type { Actor, ImportAddition, ImportedThing, ImportKind, OwningScope } from './model.ts';
import type { ImportStore, Ports } from './ports.ts';
import { Problem } from './problem.ts';
import { makeOneTimePassword } from './users.ts';

const externalIdSchema = lineSchema(limits.requestId);
const nameSchema = lineSchema(limits.name);

/** Partners, accounts, campaigns and users in one file. `externalId` is the identifier of each in another system. */
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
      }),
    )
    .default([]),
});
export type ImportFile = z.output<typeof importFileSchema>;

export type ImportCounts = { added: number; changed: number; unchanged: number };
export type ImportResult = Record<ImportKind, ImportCounts> & {
  /** One-time passwords of the users that were added. */
  passwords: { email: string; password: string }[];
};

const subjects = { partners: 'partner', accounts: 'account', campaigns: 'campaign', users: 'user' } as const;

/** Things in one transaction: other writers of a SQLite file wait for it. */
const thingsInAStep = 500;
/** Each needs a password hash first, which an interrupted import finishes before it ends. */
const usersInAStep = 25;

/** An import that failed between two steps. `soFar` has been written and stays. */
export class ImportInterrupted extends Error {
  readonly soFar: ImportResult;

  constructor(soFar: ImportResult, cause: unknown) {
    super('The import was interrupted.', { cause });
    this.name = 'ImportInterrupted';
    this.soFar = soFar;
  }
}

type Planned = { thing: ImportedThing; verb: 'added' | 'changed' };
type Plan = { planned: [ImportKind, Planned[]][]; unchanged: Record<ImportKind, number> };

/**
 * Creates and changes what the file names, and leaves the rest alone. Users can move and change their type, which their keys follow at the
 * next request; accounts and campaigns cannot move. Checks all it can before the first write, then writes in steps. A second run of the same
 * file changes nothing, or completes an interrupted import.
 *
 * @param pause runs between two steps, so that others can write. It may throw, which ends the import
 * @throws Problem if nothing was written
 * @throws ImportInterrupted if something was
 */
export async function importAll(
  ports: Ports,
  imports: ImportStore,
  pause: () => Promise<void>,
  actor: Actor,
  file: ImportFile,
): Promise<ImportResult> {
  const { planned, unchanged } = await planOf(ports, imports, file);
  const result: ImportResult = { partners: counts(), accounts: counts(), campaigns: counts(), users: counts(), passwords: [] };
  let hasWritten = false;
  try {
    for (const [kind, things] of planned) {
      result[kind].unchanged = unchanged[kind];
      const size = kind === 'users' ? usersInAStep : thingsInAStep;
      for (let start = 0; start < things.length; start += size) {
        if (hasWritten) await pause();
        await writeStep(ports, imports, actor, kind, things.slice(start, start + size), result);
        hasWritten = true;
      }
    }
    return result;
  } catch (error) {
    throw hasWritten ? new ImportInterrupted(result, error) : error;
  }
}

async function writeStep(
  ports: Ports,
  imports: ImportStore,
  actor: Actor,
  kind: ImportKind,
  step: readonly Planned[],
  result: ImportResult,
): Promise<void> {
  const subject = subjects[kind];
  const eventOf = ({ thing, verb }: Planned) =>
    auditEvent(ports, actor, `${subject}.${verb}`, { kind: subject, id: thing.id, name: thing.name }, owningScopeOfThing(kind, thing));
  const added: ImportAddition[] = [];
  const passwords: ImportResult['passwords'] = [];
  for (const one of step.filter(({ verb }) => verb === 'added')) {
    // Before the transaction, since a hash takes long.
    const made = kind === 'users' ? await makeOneTimePassword(ports) : null;
    if (made && one.thing.email !== null) passwords.push({ email: one.thing.email, password: made.password });
    added.push({ thing: one.thing, password: made?.stored ?? null, event: eventOf(one) });
  }
  const changed = step.filter(({ verb }) => verb === 'changed').map((one) => ({ thing: one.thing, event: eventOf(one) }));
  await imports.write(kind, { added, changed });
  result[kind].added += added.length;
  result[kind].changed += changed.length;
  result.passwords.push(...passwords);
}

/** @throws Problem `invalid` or `conflict` */
async function planOf(ports: Ports, imports: ImportStore, file: ImportFile): Promise<Plan> {
  for (const [kind, things] of Object.entries(file)) refuseRepeats(kind, 'externalId', things);
  refuseRepeats('users', 'email', file.users);
  const plan: Plan = { planned: [], unchanged: { partners: 0, accounts: 0, campaigns: 0, users: 0 } };

  /** @returns the things of the file by external id, as they will be */
  async function bring(kind: ImportKind, wanted: Omit<ImportedThing, 'id'>[]): Promise<Map<string, ImportedThing>> {
    const known = await imports.find(
      kind,
      wanted.map(({ externalId }) => externalId),
    );
    const planned: Planned[] = [];
    const things = wanted.map((want, index) => {
      const found = known.get(want.externalId);
      const thing = { ...want, id: found?.id ?? ports.randomness.id() };
      if (!found) planned.push({ thing, verb: 'added' });
      else if (isSame(found, thing)) plan.unchanged[kind]++;
      else if (kind !== 'users' && (found.partnerId !== thing.partnerId || found.accountId !== thing.accountId)) {
        throw invalid(`${kind}.${index}`, `The ${subjects[kind]} ${want.externalId} belongs elsewhere; only users can move.`);
      } else planned.push({ thing, verb: 'changed' });
      return thing;
    });
    plan.planned.push([kind, planned]);
    if (kind === 'users') await refuseTakenEmails(imports, things, known);
    return new Map(things.map((thing) => [thing.externalId, thing]));
  }

  /** Looks a reference up in the file first, then in the database. */
  const resolver = async (kind: 'partners' | 'accounts', ofFile: Map<string, ImportedThing>, externalIds: (string | undefined)[]) => {
    const elsewhere = externalIds.filter((externalId) => externalId !== undefined && !ofFile.has(externalId));
    const known = await imports.find(
      kind,
      [...new Set(elsewhere)].filter((externalId) => externalId !== undefined),
    );
    return (path: string, externalId: string): ImportedThing => {
      const found = ofFile.get(externalId) ?? known.get(externalId);
      if (!found) throw invalid(path, `There is no ${subjects[kind]} with the externalId ${externalId}.`);
      return found;
    };
  };
  const nowhere = { partnerId: null, accountId: null, email: null, userType: null };

  const partners = await bring(
    'partners',
    file.partners.map((partner) => ({ ...nowhere, ...partner })),
  );
  const partnerOf = await resolver(
    'partners',
    partners,
    [...file.accounts, ...file.users].map(({ partner }) => partner),
  );
  const accounts = await bring(
    'accounts',
    file.accounts.map(({ externalId, name, partner }, index) => {
      return { ...nowhere, externalId, name, partnerId: partnerOf(`accounts.${index}.partner`, partner).id };
    }),
  );
  const accountOf = await resolver(
    'accounts',
    accounts,
    [...file.campaigns, ...file.users].map(({ account }) => account),
  );
  await bring(
    'campaigns',
    file.campaigns.map(({ externalId, name, account }, index) => {
      const { id, partnerId } = accountOf(`campaigns.${index}.account`, account);
      return { ...nowhere, externalId, name, accountId: id, partnerId };
    }),
  );
  await bring(
    'users',
    file.users.map(({ externalId, email, name, userType, partner, account }, index) => {
      const path = `users.${index}`;
      const isRight = { account: account && !partner, partner: partner, staff: !partner && !account }[userType];
      if (!isRight)
        throw invalid(
          path,
          'Give an account user an account, a partner user a partner (and an account beneath it, if tied), staff neither.',
        );
      const home = account === undefined ? null : accountOf(`${path}.account`, account);
      const under = partner === undefined ? (home?.partnerId ?? null) : partnerOf(`${path}.partner`, partner).id;
      if (home && home.partnerId !== under)
        throw invalid(`${path}.account`, `The account ${account} is not beneath the partner ${partner}.`);
      return { externalId, email, name, userType, accountId: home?.id ?? null, partnerId: under };
    }),
  );
  return plan;
}

/** Checks the users in file order: a user who changes their address frees the old one for a later user. */
async function refuseTakenEmails(
  imports: ImportStore,
  users: readonly ImportedThing[],
  known: ReadonlyMap<string, ImportedThing>,
): Promise<void> {
  const owners = await imports.findEmails(users.map(({ email }) => email).filter((email) => email !== null));
  for (const { externalId, email } of users) {
    if (email === null) continue;
    if (owners.has(email) && owners.get(email) !== externalId) {
      throw new Problem('conflict', `Another user has the e-mail address ${email} already.`);
    }
    const before = known.get(externalId)?.email ?? null;
    if (before !== null && before !== email) owners.delete(before);
    owners.set(email, externalId);
  }
}

function refuseRepeats<Field extends string>(kind: string, field: Field, things: readonly Record<Field, string>[]): void {
  const seen = new Set<string>();
  for (const [index, thing] of things.entries()) {
    if (seen.has(thing[field])) throw invalid(`${kind}.${index}.${field}`, `The ${field} ${thing[field]} is there twice.`);
    seen.add(thing[field]);
  }
}

function owningScopeOfThing(kind: ImportKind, thing: ImportedThing): OwningScope | null {
  if (kind === 'partners') return { accountId: null, partnerId: thing.id };
  if (thing.partnerId === null) return null;
  return { accountId: kind === 'accounts' ? thing.id : thing.accountId, partnerId: thing.partnerId };
}

function isSame(found: ImportedThing, wanted: ImportedThing): boolean {
  const fields = ['name', 'partnerId', 'accountId', 'email', 'userType'] as const;
  return fields.every((field) => found[field] === wanted[field]);
}

function counts(): ImportCounts {
  return { added: 0, changed: 0, unchanged: 0 };
}

function invalid(path: string, message: string): Problem {
  return new Problem('invalid', `${path}: ${message}`, { errors: [{ path, message }] });
}
