import type { Knex } from 'knex';
import { changeApiKey } from '../../domain/api-keys.ts';
import { userEvent } from '../../domain/audit/audit.ts';
import { readableEmail } from '../../domain/directory/readable-email.ts';
import { changeUser, unlinkUser } from '../../domain/directory/users.ts';
import type { ListedUser } from '../../domain/ports.ts';
import { recordAudit } from '../../storage/audit/audit.ts';
import { inChunks } from '../../storage/engine/database.ts';
import type { ApiKeyRow, LinkRow, SecondFactorRow, UserRow } from '../../storage/engine/tables.ts';
import type { AdminContext } from '../command-line.ts';

type KeyLimitRow = Pick<ApiKeyRow, 'id' | 'name' | 'addresses' | 'calls_per_day'>;
export type Rights = {
  users: ReadonlyMap<string, UserRow>;
  links: ReadonlyMap<string, LinkRow>;
  factors: ReadonlyMap<string, SecondFactorRow>;
  recoveryCodes: ReadonlyMap<string, readonly string[]>;
  keys: ReadonlyMap<string, KeyLimitRow>;
};

/** @param keyIds the keys whose limits to read; by default, every key with limits */
export async function readRights(table: (name: string) => Knex.QueryBuilder, keyIds: readonly string[] | null = null): Promise<Rights> {
  const read = async <Row>(name: string): Promise<Row[]> => table(name).select('*');
  const keys: KeyLimitRow[] = [];
  if (keyIds !== null) for (const ids of inChunks(keyIds)) keys.push(...(await table('api_keys').whereIn('id', ids).select('*')));
  else keys.push(...(await table('api_keys').whereNotNull('limits_version').select('*')));
  const codes = Map.groupBy(await read<{ user_id: string; digest: string }>('recovery_codes'), ({ user_id }) => user_id);
  return {
    users: new Map((await read<UserRow>('users')).filter((row) => row.deleted_at === null).map((row) => [row.id, row])),
    links: new Map((await read<LinkRow>('oidc_links')).map((row) => [row.user_id, row])),
    factors: new Map(
      (await read<SecondFactorRow>('second_factors')).filter((row) => row.confirmed_at !== null).map((row) => [row.user_id, row]),
    ),
    recoveryCodes: new Map([...codes].map(([id, rows]) => [id, rows.map(({ digest }) => digest)])),
    keys: new Map(keys.map((row) => [row.id, row])),
  };
}

/** What the restore has undone. An address can't be changed again by a command, so it's only listed. */
const changes = {
  rights: 'moved or demoted',
  link: 'unlinked',
  password: 'password',
  factor: 'second factor',
  email: 'email address',
} as const;
type Change = keyof typeof changes;

/** @property was the user as the replaced database had them */
type WidenedUser = { id: string; email: string; name: string; changes: Change[]; was: Was };
type Was = { user: UserRow; factor: SecondFactorRow | null; recoveryCodes: readonly string[] };
/** The limits that a key had in the replaced database, if they allow less. */
type WidenedKey = { id: string; name: string; addresses: string[] | null; callsPerDay: number | null };
export type Widened = { users: WidenedUser[]; keys: WidenedKey[] };

/** Finds whose rights, and which keys' limits, were reduced after the backup. @param after the restored database */
export function findWidened(before: Rights, after: Rights): Widened {
  return {
    users: [...before.users.values()].flatMap((was) => {
      const now = after.users.get(was.id);
      const found = now ? findChanges(before, after, was, now) : [];
      const recoveryCodes = before.recoveryCodes.get(was.id) ?? [];
      const kept = { user: was, factor: before.factors.get(was.id) ?? null, recoveryCodes };
      return now && found.length > 0 ? [{ id: now.id, email: now.email, name: now.name, changes: found, was: kept }] : [];
    }),
    keys: [...before.keys.values()].flatMap((was) => {
      const now = after.keys.get(was.id);
      return now ? findNarrower(was, now) : [];
    }),
  };
}

function findChanges(before: Rights, after: Rights, was: UserRow, now: UserRow): Change[] {
  const [linkBefore, linkNow] = [before.links.get(was.id), after.links.get(was.id)];
  const [factorBefore, factorNow] = [before.factors.get(was.id), after.factors.get(was.id)];
  const isUnlinked = linkNow !== undefined && (linkNow.issuer !== linkBefore?.issuer || linkNow.subject !== linkBefore.subject);
  const hasOtherPassword = was.password_hash !== now.password_hash || was.password_expires_at !== now.password_expires_at;
  const all: Record<Change, boolean> = {
    rights: isReduced(was, now),
    link: isUnlinked,
    password: hasOtherPassword,
    // An app's secret is encrypted again with each new session secret, so compare when it was confirmed.
    factor: factorBefore?.confirmed_at !== factorNow?.confirmed_at,
    email: was.email !== now.email,
  };
  return (Object.keys(changes) as Change[]).filter((change) => all[change]);
}

const ranks = { account: 0, partner: 1, staff: 2 } as const;

/** Whether the user had less access, or access to something else. */
function isReduced(was: UserRow, now: UserRow): boolean {
  if (was.user_type === 'staff') return false;
  if (was.partner_id !== now.partner_id || ranks[was.user_type] < ranks[now.user_type]) return true;
  return was.account_id !== null && was.account_id !== now.account_id;
}

function findNarrower(was: KeyLimitRow, now: KeyLimitRow): WidenedKey[] {
  const isOtherPlace = was.addresses != null && was.addresses !== now.addresses;
  const isFewer = was.calls_per_day != null && was.calls_per_day < (now.calls_per_day ?? Number.POSITIVE_INFINITY);
  if (!isOtherPlace && !isFewer) return [];
  const parse = (addresses: string | null | undefined): string[] | null => (addresses == null ? null : JSON.parse(addresses));
  const addresses = parse(isOtherPlace ? was.addresses : now.addresses);
  return [{ id: was.id, name: now.name, addresses, callsPerDay: (isFewer ? was.calls_per_day : now.calls_per_day) ?? null }];
}

export function describeChanges({ changes: found }: WidenedUser): string {
  return found.map((change) => changes[change]).join(', ');
}

/** Makes all of these changes again, as far as it can. @returns a sentence for each that it couldn't make */
export async function reduceAgain(context: AdminContext, { users, keys }: Widened): Promise<string[]> {
  const { ports, caller } = context;
  const failures: string[] = [];
  const attempt = (what: string, work: () => Promise<unknown>) =>
    work().catch((error: unknown) => failures.push(`${what}: ${error instanceof Error ? error.message : String(error)}`));
  for (const { id, addresses, callsPerDay } of keys)
    await attempt(`key ${id}`, () => changeApiKey(ports, caller, id, { addresses, callsPerDay }));
  for (const { id, email, changes: found, was } of users) {
    for (const change of found) await attempt(`${readableEmail(email)}, ${changes[change]}`, () => changeAgain(context, id, change, was));
  }
  return failures;
}

async function changeAgain(context: AdminContext, id: string, change: Change, { user: was, ...factor }: Was): Promise<void> {
  const { ports, caller } = context;
  // Read the user again, because each change also changes the version that the next one has to name.
  const user = await ports.stores.users.find({ kind: 'all' }, id);
  if (!user) throw new Error("this user doesn't exist anymore");
  const { password_hash, password_expires_at, password_handed_out, user_type, account_id, partner_id } = was;
  if (change === 'email') throw new Error(`the address was ${readableEmail(was.email)}, so import it again`);
  if (change === 'link') return unlinkUser(ports, caller, user);
  if (change === 'factor') return setFactor(context, user, factor);
  if (change === 'rights') {
    const place = { userType: user_type, accountId: account_id, partnerId: user_type === 'partner' ? partner_id : null };
    await changeUser(ports, caller, user, place);
    return;
  }
  const password = { hash: password_hash, expiresAt: password_expires_at, isHandedOut: password_handed_out === 1 };
  const event = userEvent(ports, caller.actor, 'password.reset', user);
  if (!(await ports.stores.users.setPassword(user, password, event))) throw new Error('someone else changed this user in the meantime');
}

/** Sets up the second factor that the user had in the replaced database, or removes the one that they didn't have there. */
async function setFactor(
  { ports, caller: { actor }, storage }: AdminContext,
  user: ListedUser,
  { factor, recoveryCodes }: Omit<Was, 'user'>,
) {
  const action = factor ? 'second-factor.enabled' : 'second-factor.reset';
  const event = userEvent(ports, actor, action, user);
  await storage.database.write.transaction(async (trx) => {
    for (const table of ['recovery_codes', 'second_factors'] as const) await trx(table).where({ user_id: user.id }).delete();
    if (factor) await trx('second_factors').insert(factor);
    if (factor && recoveryCodes.length > 0)
      await trx('recovery_codes').insert(recoveryCodes.map((digest) => ({ user_id: user.id, digest })));
    await recordAudit(trx, event);
  });
}
