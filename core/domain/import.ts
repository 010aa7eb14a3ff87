import { z } from 'zod';
import { userTypeSchema } from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import { emailSchema, lineSchema } from '#contract/text.ts';
import { type Actor, type AuditEvent, auditEvent } from './audit.ts';
import type { NewPassword, Ports } from './ports.ts';
import { Problem } from './problem.ts';
import type { Home } from './tenancy.ts';
import { makeOneTimePassword } from './users.ts';

const externalIdSchema = lineSchema(limits.requestId);
const nameSchema = lineSchema(limits.name);

/** Partners, accounts, campaigns and users in one file, each under the identifier that another system knows it by. */
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
export type ImportKind = keyof ImportFile;

/** A thing as the database has it, or is to have it. Absent references are null. */
export type ImportedThing = {
  externalId: string;
  id: string;
  name: string;
  partnerId: string | null;
  accountId: string | null;
  email: string | null;
  userType: string | null;
};

/** The writing side of one import: a transaction. */
export type ImportWriter = {
  /** What is there, by external id. */
  find(kind: ImportKind, externalIds: readonly string[]): Promise<Map<string, ImportedThing>>;
  /** @throws Problem `conflict` when the e-mail address of a user is taken */
  add(kind: ImportKind, thing: ImportedThing, password: NewPassword | null, event: AuditEvent): Promise<void>;
  change(kind: ImportKind, thing: ImportedThing, event: AuditEvent): Promise<void>;
};

export type ImportStore = {
  knownUsers(externalIds: readonly string[]): Promise<Set<string>>;
  /** All of it or nothing. */
  run<Result>(work: (writer: ImportWriter) => Promise<Result>): Promise<Result>;
};

export type ImportCounts = { added: number; changed: number; unchanged: number };
export type ImportResult = Record<ImportKind, ImportCounts> & {
  /** One-time passwords of the users that were added. */
  passwords: { email: string; password: string }[];
};

const subjects = { partners: 'partner', accounts: 'account', campaigns: 'campaign', users: 'user' } as const;

/**
 * Brings the database to what the file says, and leaves alone what the file does not name. Run again, it changes nothing. Users can
 * move and change their type, which their keys follow at the next request; accounts and campaigns stay where they are.
 */
export async function importAll(ports: Ports, imports: ImportStore, actor: Actor, file: ImportFile): Promise<ImportResult> {
  for (const [kind, things] of Object.entries(file)) refuseRepeats(kind, things);
  const passwords = await passwordsFor(ports, imports, file.users);

  return imports.run(async (writer) => {
    const result: ImportResult = { partners: counts(), accounts: counts(), campaigns: counts(), users: counts(), passwords: [] };

    async function bring(kind: ImportKind, wanted: Omit<ImportedThing, 'id'>[]): Promise<void> {
      const known = await writer.find(
        kind,
        wanted.map(({ externalId }) => externalId),
      );
      for (const [index, want] of wanted.entries()) {
        const found = known.get(want.externalId);
        const thing = { ...want, id: found?.id ?? ports.randomness.id() };
        const path = `${kind}.${index}`;
        const event = (verb: 'added' | 'changed') =>
          auditEvent(
            ports,
            actor,
            `${subjects[kind]}.${verb}`,
            { kind: subjects[kind], id: thing.id, name: thing.name },
            homeOfThing(kind, thing),
          );
        if (!found) {
          const made = passwords.get(want.externalId);
          await writer.add(kind, thing, made?.stored ?? null, event('added'));
          if (made && thing.email !== null) result.passwords.push({ email: thing.email, password: made.password });
          result[kind].added++;
        } else if (isSame(found, thing)) {
          result[kind].unchanged++;
        } else {
          if (kind !== 'users' && (found.partnerId !== thing.partnerId || found.accountId !== thing.accountId)) {
            throw invalid(path, `The ${subjects[kind]} ${want.externalId} stands elsewhere; only users can move.`);
          }
          await writer.change(kind, thing, event('changed'));
          result[kind].changed++;
        }
      }
    }

    const resolver = async (kind: 'partners' | 'accounts', externalIds: (string | undefined)[]) => {
      const known = await writer.find(
        kind,
        externalIds.filter((externalId) => externalId !== undefined),
      );
      return (path: string, externalId: string): ImportedThing => {
        const found = known.get(externalId);
        if (!found) throw invalid(path, `There is no ${subjects[kind]} with the externalId ${externalId}.`);
        return found;
      };
    };
    const nowhere = { partnerId: null, accountId: null, email: null, userType: null };

    await bring(
      'partners',
      file.partners.map((partner) => ({ ...nowhere, ...partner })),
    );

    const partnerOfAccount = await resolver(
      'partners',
      file.accounts.map(({ partner }) => partner),
    );
    await bring(
      'accounts',
      file.accounts.map(({ externalId, name, partner }, index) => {
        return { ...nowhere, externalId, name, partnerId: partnerOfAccount(`accounts.${index}.partner`, partner).id };
      }),
    );

    const accountOfCampaign = await resolver(
      'accounts',
      file.campaigns.map(({ account }) => account),
    );
    await bring(
      'campaigns',
      file.campaigns.map(({ externalId, name, account }, index) => {
        const { id, partnerId } = accountOfCampaign(`campaigns.${index}.account`, account);
        return { ...nowhere, externalId, name, accountId: id, partnerId };
      }),
    );

    const partnerOfUser = await resolver(
      'partners',
      file.users.map(({ partner }) => partner),
    );
    const accountOfUser = await resolver(
      'accounts',
      file.users.map(({ account }) => account),
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
        const home = account === undefined ? null : accountOfUser(`${path}.account`, account);
        const under = partner === undefined ? (home?.partnerId ?? null) : partnerOfUser(`${path}.partner`, partner).id;
        if (home && home.partnerId !== under)
          throw invalid(`${path}.account`, `The account ${account} is not beneath the partner ${partner}.`);
        return { externalId, email, name, userType, accountId: home?.id ?? null, partnerId: under };
      }),
    );
    return result;
  });
}

/** Hashing takes its time, so it is done before the transaction. */
async function passwordsFor(ports: Ports, imports: ImportStore, users: ImportFile['users']) {
  const known = await imports.knownUsers(users.map(({ externalId }) => externalId));
  const passwords = new Map<string, { password: string; stored: NewPassword }>();
  for (const { externalId } of users) {
    if (!known.has(externalId)) passwords.set(externalId, await makeOneTimePassword(ports));
  }
  return passwords;
}

function refuseRepeats(kind: string, things: { externalId: string }[]): void {
  const seen = new Set<string>();
  for (const [index, { externalId }] of things.entries()) {
    if (seen.has(externalId)) throw invalid(`${kind}.${index}.externalId`, `The externalId ${externalId} is there twice.`);
    seen.add(externalId);
  }
}

function homeOfThing(kind: ImportKind, thing: ImportedThing): Home | null {
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
