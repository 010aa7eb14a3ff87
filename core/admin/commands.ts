import { readFile } from 'node:fs/promises';
import type { z } from 'zod';
import { newPasswordSchema, type UserType } from '#contract/console.ts';
import { isExpired } from '#contract/expiry.ts';
import { limits } from '#contract/limits.ts';
import { emailSchema, lineSchema } from '#contract/text.ts';
import { revokeVisible } from '../domain/api-keys.ts';
import { auditEvent, operator } from '../domain/audit.ts';
import { ImportInterrupted, type ImportResult, importAll, importFileSchema } from '../domain/import.ts';
import type { ApiKey, ListedUser, User } from '../domain/model.ts';
import type { Ports } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { endOverdueCalls, eraseOldContacts } from '../domain/retention.ts';
import { owningScopeOf } from '../domain/sessions.ts';
import { createAccount, createCampaign, createPartner } from '../domain/tenancies.ts';
import { createUser, deleteUser, resetPassword } from '../domain/users.ts';
import type { DatabaseLocation } from '../storage/database.ts';
import type { Storage } from '../storage/index.ts';
import { backUp } from './backup.ts';
import { findings } from './check.ts';
import { type Output, oneLine, table } from './output.ts';
import { restore } from './restore.ts';

/** What a command works with. */
export type AdminDeps = {
  ports: Ports;
  storage: Storage;
  location: DatabaseLocation;
  output: Output;
  retentionDays: number | null;
  readInput: () => Promise<string>;
  /** Between two steps of an import. */
  pauseImport: () => Promise<void>;
};

const nameSchema = lineSchema(limits.name);
const oneTimeNote = 'The password is shown this once and works for seven days, until its user has chosen another.';

export async function partnerAdd({ ports, output }: AdminDeps, name: string): Promise<void> {
  const partner = await createPartner(ports, operator, checked(nameSchema, name, 'NAME'));
  output.answer({ partner }, `Added the partner ${partner.name}: ${partner.id}`);
}

export async function accountAdd({ ports, output }: AdminDeps, name: string, options: { partner: string }): Promise<void> {
  const account = await createAccount(ports, operator, checked(nameSchema, name, 'NAME'), options.partner);
  output.answer({ account }, `Added the account ${account.name}: ${account.id}`);
}

export async function campaignAdd({ ports, output }: AdminDeps, name: string, options: { account: string }): Promise<void> {
  const campaign = await createCampaign(ports, operator, checked(nameSchema, name, 'NAME'), options.account);
  output.answer({ campaign }, `Added the campaign ${campaign.name}: ${campaign.id}`);
}

type UserAddOptions = { name: string; type: UserType; account?: string; partner?: string; passwordStdin?: true };

export async function userAdd(deps: AdminDeps, email: string, options: UserAddOptions): Promise<void> {
  const input = {
    email: checked(emailSchema, email, 'EMAIL'),
    name: checked(nameSchema, options.name, '--name'),
    userType: options.type,
    accountId: options.account ?? null,
    partnerId: options.partner ?? null,
  };
  const { user, password } = await createUser(deps.ports, operator, input, await givenPassword(deps, options));
  answerWithPassword(deps.output, user, password, `Added the ${user.userType} user ${user.email}: ${user.id}`);
}

export async function userPassword(deps: AdminDeps, email: string, options: { passwordStdin?: true }): Promise<void> {
  const user = await userByEmail(deps.ports, email);
  const { password } = await resetPassword(deps.ports, operator, user, await givenPassword(deps, options));
  answerWithPassword(deps.output, user, password, `Gave ${user.email} a new password, and ended their sessions.`);
}

function answerWithPassword(output: Output, user: User, password: string | null, text: string): void {
  if (password === null) output.answer({ user: userJson(user) }, text);
  else output.answer({ user: userJson(user), password }, `${text}\nOne-time password: ${password}\n${oneTimeNote}`);
}

export async function userDelete({ ports, output }: AdminDeps, email: string, options: { cancelQueuedCalls?: true }): Promise<void> {
  const user = await userByEmail(ports, email);
  const gone = await deleteUser(ports, operator, user, options.cancelQueuedCalls ?? false);
  output.answer({ user: userJson(user), ...gone }, `Deleted ${user.email}, with ${gone.apiKeys} API keys and ${gone.sessions} sessions.`);
}

export async function userList({ ports, output }: AdminDeps): Promise<void> {
  const users = await ports.stores.users.list({ kind: 'all' });
  const json = users.map((user) => ({
    ...userJson(user),
    createdAt: wire(user.createdAt),
    lastSignInAt: user.lastSignInAt && wire(user.lastSignInAt),
    apiKeys: user.apiKeys,
  }));
  const rows = users.map((user) => [
    user.email,
    user.name,
    user.userType,
    placeOf(user),
    String(user.apiKeys),
    user.lastSignInAt ? wire(user.lastSignInAt) : 'Never',
  ]);
  output.answer({ users: json }, table(['E-MAIL', 'NAME', 'TYPE', 'OF', 'KEYS', 'LAST SIGN-IN'], rows));
}

export async function keyList({ ports, output }: AdminDeps): Promise<void> {
  const { apiKeys, total } = await ports.stores.apiKeys.list({ kind: 'all' }, limits.listedApiKeys);
  const now = ports.clock.now().toMillis();
  const json = apiKeys.map((key) => ({
    id: key.id,
    name: key.name,
    owner: key.creator,
    ...key.owningScope,
    createdAt: wire(key.createdAt),
    lastUsedAt: key.lastUsedAt && wire(key.lastUsedAt),
    expiresAt: key.expiresAt && wire(key.expiresAt),
    expiryTimeZone: key.expiryTimeZone,
    expired: isExpired(key.expiresAt?.toMillis() ?? null, now),
  }));
  const rows = apiKeys.map((key) => [
    key.id,
    key.name,
    key.creator.name,
    wire(key.createdAt),
    key.lastUsedAt ? wire(key.lastUsedAt) : 'Never',
    expiryOf(key, now),
  ]);
  const text = table(['ID', 'NAME', 'OWNER', 'CREATED', 'LAST USED', 'EXPIRY'], rows);
  output.answer(
    { apiKeys: json, total, limit: limits.listedApiKeys },
    total > apiKeys.length ? `${text}\nNewest ${apiKeys.length} of ${total}.` : text,
  );
}

export async function keyRevoke({ ports, output }: AdminDeps, id: string, options: { cancelQueuedCalls?: true }): Promise<void> {
  const key = await revokeVisible(ports, { kind: 'all' }, operator, id, options.cancelQueuedCalls ?? false);
  output.answer({ apiKey: { id: key.id, name: key.name } }, `Revoked the API key ${key.name} of ${key.creator.name}.`);
}

export async function sessionRevoke({ ports, output }: AdminDeps, email: string): Promise<void> {
  const user = await userByEmail(ports, email);
  const event = auditEvent(ports, operator, 'session.revoked', { kind: 'user', id: user.id, name: user.name }, owningScopeOf(user));
  const sessions = await ports.stores.sessions.endAll(user.id, event);
  output.answer({ user: userJson(user), sessions }, `Ended ${sessions} sessions of ${user.email}.`);
}

export async function importFile({ ports, storage, output, pauseImport }: AdminDeps, file: string): Promise<void> {
  const wanted = checked(importFileSchema, await readJson(file), file);
  try {
    answerImport(output, await importAll(ports, storage.imports, pauseImport, operator, wanted));
  } catch (error) {
    if (!(error instanceof ImportInterrupted)) throw error;
    // The one-time passwords of users who are there by now are shown here or never.
    answerImport(output, error.soFar);
    throw error;
  }
}

function answerImport(output: Output, { passwords, ...counts }: ImportResult): void {
  const lines = Object.entries(counts).map(([kind, { added, changed, unchanged }]) => [
    kind,
    String(added),
    String(changed),
    String(unchanged),
  ]);
  const made =
    passwords.length === 0
      ? []
      : [
          '',
          table(
            ['E-MAIL', 'ONE-TIME PASSWORD'],
            passwords.map(({ email, password }) => [email, password]),
          ),
          oneTimeNote,
        ];
  output.answer({ ...counts, passwords }, [table(['', 'ADDED', 'CHANGED', 'UNCHANGED'], lines), ...made].join('\n'));
}

export async function backup({ storage, location, output }: AdminDeps, file: string): Promise<void> {
  await backUp(storage, location, file);
  output.answer({ backup: { file } }, `Wrote ${file}.`);
}

/** What a restore works with: there may be no database yet. */
export type RestoreDeps = { location: DatabaseLocation; output: Output; now: Date };

export async function restoreFile({ location, output, now }: RestoreDeps, file: string): Promise<void> {
  const { before, revived, missing } = await restore(location, file, now);
  const apiKeys = revived?.apiKeys.map(({ creatorId, creatorName, revokedAt, ...key }) => ({
    ...key,
    owner: { id: creatorId, name: creatorName },
    revokedAt: new Date(revokedAt).toISOString(),
  }));
  const users = revived?.users.map(({ deletedAt, ...user }) => ({ ...user, deletedAt: new Date(deletedAt).toISOString() }));
  const lines = [
    before === null ? `Restored ${file}.` : `Restored ${file}. The database that was there is now ${before}.`,
    'All sessions have ended: everybody signs in again, with the password of the time of the backup.',
  ];
  if (missing.length > 0)
    lines.push(`Its schema is older (it lacks ${missing.join(', ')}): run npm run admin -- migrate, or start a core.`);
  if (!revived) lines.push('The database that was there cannot be read, so API keys that were revoked since the backup cannot be listed.');
  if (apiKeys && apiKeys.length > 0) {
    const rows = apiKeys.map(({ id, name, owner, revokedAt }) => [id, name, owner.name, revokedAt]);
    lines.push('', 'These API keys were revoked since the backup and WORK AGAIN. Revoke them: npm run admin -- key revoke ID');
    lines.push(table(['ID', 'NAME', 'OWNER', 'REVOKED'], rows));
  }
  if (users && users.length > 0) {
    const rows = users.map(({ email, name, deletedAt }) => [email, name, deletedAt]);
    lines.push('', 'These users were deleted since the backup and CAN SIGN IN AGAIN. Delete them: npm run admin -- user delete EMAIL');
    lines.push(table(['E-MAIL', 'NAME', 'DELETED'], rows));
  }
  output.answer({ restored: { file, before, missing }, revokedApiKeys: apiKeys ?? null, deletedUsers: users ?? null }, lines.join('\n'));
}

export async function retentionShow({ ports, output, retentionDays }: AdminDeps): Promise<void> {
  if (retentionDays === null) {
    output.answer({ retentionDays, erasable: 0 }, 'RETENTION_DAYS is off: contact data is kept.');
    return;
  }
  const erasable = await ports.stores.retention.countErasable(ports.clock.now().minus({ days: retentionDays }));
  output.answer({ retentionDays, erasable }, `${erasable} calls ended more than ${retentionDays} days ago and still have contact data.`);
}

export async function retentionRun({ ports, output, retentionDays }: AdminDeps): Promise<void> {
  await endOverdueCalls(ports.stores.dialing, ports.clock);
  const erased = retentionDays === null ? 0 : await eraseOldContacts(ports.stores.retention, ports.clock, retentionDays);
  output.answer({ retentionDays, erased }, `Erased the contact data of ${erased} calls.`);
}

export async function migrateSchema({ storage, output }: AdminDeps): Promise<void> {
  const applied = await storage.migrate();
  output.answer(
    { migrations: applied },
    applied.length === 0 ? 'Nothing to do: the schema is complete.' : `Applied ${applied.join(', ')}.`,
  );
}

/** @returns whether all is well */
export async function check({ storage, location, output }: AdminDeps, options: { repair?: true }): Promise<boolean> {
  const found = await findings(storage, location, options.repair ?? false);
  const ok = found.every((finding) => finding.ok);
  output.answer(
    { ok, checks: found },
    found.map((finding) => `${finding.ok ? 'ok   ' : 'WRONG'}  ${finding.name}: ${finding.detail}`).join('\n'),
  );
  return ok;
}

async function userByEmail(ports: Ports, email: string): Promise<User> {
  const credentials = await ports.stores.users.findByEmail(checked(emailSchema, email, 'EMAIL'));
  if (!credentials) throw new Problem('not-found', `There is no user ${email}. See: admin user list`);
  return credentials.user;
}

async function givenPassword(deps: AdminDeps, { passwordStdin }: { passwordStdin?: true }): Promise<string | null> {
  if (!passwordStdin) return null;
  return checked(newPasswordSchema, (await deps.readInput()).replace(/\r?\n$/, ''), 'The password on standard input');
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw new Problem('invalid', oneLine(`${file} cannot be read as JSON (${error instanceof Error ? error.message : String(error)}).`));
  }
}

/** @throws Problem `invalid`, naming what is wrong and where */
function checked<Schema extends z.ZodType>(schema: Schema, input: unknown, what: string): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const complaints = parsed.error.issues.map((issue) => oneLine([...issue.path.map(String), issue.message].join(' '))).slice(0, 20);
  throw new Problem('invalid', `${oneLine(what)}: ${complaints.join('\n')}`);
}

function userJson(user: User) {
  const { id, email, name, userType } = user;
  return { id, email, name, userType, accountId: user.account?.id ?? null, partnerId: user.partner?.id ?? null };
}

function placeOf({ partner, account }: ListedUser): string {
  return [partner?.name, account?.name].filter((name) => name !== undefined).join(' / ');
}

function expiryOf(key: ApiKey, now: number): string {
  if (!key.expiresAt) return 'No expiration';
  return `${isExpired(key.expiresAt.toMillis(), now) ? 'Expired ' : ''}${wire(key.expiresAt)}`;
}

function wire(at: { toJSDate(): Date }): string {
  return at.toJSDate().toISOString();
}
