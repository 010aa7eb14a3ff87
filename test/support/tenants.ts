import type { Knex } from 'knex';
import { toDigest } from '../../core/domain/api-keys.ts';
import { deadlines } from '../../core/domain/deadlines.ts';
import { instant } from '../../core/domain/instant.ts';
import type { Digest } from '../../core/domain/model.ts';
import type { Clock, KeyCaller, Ports } from '../../core/domain/ports.ts';
import { codeAt, totp } from '../../core/domain/sign-in/second-factor.ts';
import { createSecretBox } from '../../core/server/sealed-secrets.ts';
import { systemClock } from '../../core/server/start/system.ts';
import type { Lane } from '../../core/storage/engine/database.ts';
import { type ApiKeyRow, type CallRow, migrationsTable, ownTables } from '../../core/storage/engine/tables.ts';
import type { Storage } from '../../core/storage/storage.ts';
import { createTenants, openDirect as openForScripts, password, type Tenants } from '../../scripts/support/direct-database.ts';
import { type FakeClock, fakeClock, testRandomness } from './clock.ts';
import { adminOn, testSecret } from './commands.ts';
import { type DatabaseKind, databaseKinds, databases, onEachDatabase, withoutRows } from './databases.ts';
import { type Answer, ask, readCookies, textAt, untilServed } from './http.ts';
import { cheapPasswords } from './ports.ts';
import { openForEach, openOnce } from './suites.ts';

export { createTenants, password, type Tenants };

/** Direct access to the database of a core under test. `await using` closes it at the end of the block. */
export type DirectAccess = AsyncDisposable & { ports: Ports; storage: Storage; close(): Promise<void> };

export async function openDirect(databaseUrl: string, clock: Clock = systemClock): Promise<DirectAccess> {
  const secretBox = createSecretBox([testSecret], testRandomness);
  const ofTests = { clock, randomness: testRandomness, passwords: cheapPasswords(), secretBox, adminCommand: 'callkey-admin' };
  const { ports, storage } = await openForScripts(databaseUrl, ofTests);
  const close = () => storage.close();
  return { ports, storage, close, [Symbol.asyncDispose]: close };
}

/** Long before any test's clock. */
const createdAt = fakeClock('2026-01-01T00:00:00.000Z');

/** Adds the tenants to a database. */
export async function addTenants(databaseUrl: string, clock?: Clock): Promise<Tenants> {
  await using direct = await openDirect(databaseUrl, clock);
  return await createTenants(direct.ports);
}

const withTenants = databases('with tenants', (databaseUrl) => addTenants(databaseUrl, createdAt));

/** Returns a new database with the tenants. */
export async function databaseWithTenants(kind: DatabaseKind): Promise<{ database: string; tenants: Tenants }> {
  const { database, content: tenants } = await withTenants.createCopy(kind);
  return { database, tenants };
}

type WithTenants = { direct: DirectAccess & { database: string }; tenants: Tenants };

/** Opens a new database with the tenants before a suite's tests, and closes it after them. Both objects have their properties once it's open. */
export const tenantsOnce = (kind: DatabaseKind, clock?: Clock) => withTenantsOpen(openOnce, kind, clock);

/** The same for each test of a suite. */
export const tenantsForEach = (kind: DatabaseKind, clock?: Clock) => withTenantsOpen(openForEach, kind, clock);

/**
 * Opens one database with the tenants for a suite, and undoes all changes of its rows before each test. That's much cheaper than a database
 * for each test, but a test must undo other changes itself, such as those of the schema or its statistics.
 */
export function restoredTenants(kind: DatabaseKind, clock?: Clock): WithTenants {
  const opened = tenantsOnce(kind, clock);
  restoreForEach(() => opened.direct);
  return opened;
}

/** Before each test of a suite, restores the rows that a database has once the suite's hooks have opened it. */
export function restoreForEach(find: () => DirectAccess): void {
  let restore: () => Promise<void>;
  before(async () => {
    restore = await keepRows(find().storage.database);
  });
  beforeEach(() => restore());
}

/** Remembers a database's rows. @returns how to restore them */
async function keepRows({ read, write, kind }: Lane): Promise<() => Promise<void>> {
  const tables = ownTables.filter((table) => table !== migrationsTable && (kind === 'postgres' || table !== 'call_count_changes'));
  const kept: [table: string, rows: object[]][] = [];
  for (const table of tables) kept.push([table, await read(table)]);
  return () =>
    write.transaction(async (trx) => {
      const partners: { rules_version: number | null; do_not_call_version: number | null }[] = await trx('partners').select(
        'rules_version',
        'do_not_call_version',
      );
      for (const table of tables.toReversed()) await trx(table).delete();
      for (const [table, rows] of kept) await insertAsJson(trx, kind, table, rows);
      // The stores remember rules and lists by their versions.
      const newest = (column: 'rules_version' | 'do_not_call_version') => Math.max(...partners.map((partner) => partner[column] ?? 0));
      const [rules, lists] = [newest('rules_version'), newest('do_not_call_version')];
      if (rules > 0) await trx('partners').update({ rules_version: rules + 1 });
      if (lists > 0) await trx('partners').update({ do_not_call_version: lists + 1 });
    });
}

function withTenantsOpen(open: typeof openOnce, kind: DatabaseKind, clock?: Clock): WithTenants {
  const tenants = {} as Tenants;
  const direct = open(async () => {
    const { database, tenants: added } = await databaseWithTenants(kind);
    Object.assign(tenants, added);
    return { ...(await openDirect(database, clock)), database };
  });
  return { direct, tenants };
}

/** Runs the commands of `admin` on databases with the tenants, whose rows are the same for each test. */
export function describeAdminWithTenants(
  title: string,
  tests: (on: ReturnType<typeof adminOn> & WithTenants & { kind: DatabaseKind }) => void,
): void {
  describe(title, () => {
    onEachDatabase((kind) => {
      const opened = restoredTenants(kind);
      tests({ ...adminOn(() => opened.direct.database), ...opened, kind });
    });
  });
}

/** Signs in. @returns the session's cookie */
export async function signIn(url: string, email: string, withPassword = password): Promise<string> {
  const answer = await untilServed(() => ask('POST', `${url}/console/session`, { body: { email, password: withPassword } }));
  if (answer.status !== 201) throw new Error(`Signing in failed: ${answer.status} ${answer.text}`);
  return readCookies(answer);
}

/** Signs in with a one-time password, and changes it to the password that all test users have. @returns the session's cookie */
export async function signInFirst(url: string, email: string, oneTimePassword = ''): Promise<string> {
  const cookie = await signIn(url, email, oneTimePassword);
  const { status } = await ask('POST', `${url}/console/password`, { cookie, body: { newPassword: password } });
  if (status !== 204) throw new Error(`Choosing a password failed: ${status}`);
  return cookie;
}

/** Creates a key in the session's scope. */
export async function createKey(
  url: string,
  cookie: string,
  name = 'A key',
  expiration: object = { kind: 'none' },
): Promise<{ id: string; keyValue: string }> {
  const answer = await ask('POST', `${url}/console/api-keys`, { cookie, body: { name, expiration, timeZone: 'Europe/Berlin' } });
  if (answer.status !== 201) throw new Error(`Creating a key failed: ${answer.status} ${answer.text}`);
  return { id: textAt(answer, 'apiKey', 'id'), keyValue: textAt(answer, 'keyValue') };
}

/** Creates a key with a daily limit: its calls are placed by a statement of their own. @returns its value */
export async function createLimitedKey(url: string, cookie: string): Promise<string> {
  const { id, keyValue } = await createKey(url, cookie);
  const { status } = await ask('PATCH', `${url}/console/api-keys/${id}`, { cookie, body: { callsPerDay: 1_000 } });
  if (status !== 200) throw new Error(`Limiting the key failed: ${status}`);
  return keyValue;
}

/** Returns the caller with this key and the current time. */
export function toCaller(digest: Digest): KeyCaller {
  return { digest, deadline: performance.now() + deadlines.answer, address: '127.0.0.1', key: { expiresAt: null, limits: null } };
}

let callers = 0;

/** Returns a phone number that no other call has. */
export function somePhone(): string {
  return `+4930${20_000_000 + ++callers}`;
}

export function onDemand(url: string, campaignId: string): string {
  return `${url}/api/v1/campaigns/${campaignId}/contacts/on-demand`;
}

export function placeCall(
  url: string,
  campaignId: string,
  key: string,
  body: object = { contact: { phone: somePhone() } },
): Promise<Answer> {
  return ask('POST', onDemand(url, campaignId), { key, body });
}

/** Creates the databases that all test files copy. @returns the value of TEST_TEMPLATES */
export async function makeTemplates(): Promise<string> {
  const named = Object.entries({ 'without rows': withoutRows, 'with tenants': withTenants });
  const templates = named.flatMap(([name, { getTemplate }]) =>
    databaseKinds.map(async (kind) => [`${name} ${kind}`, await getTemplate(kind)] as const),
  );
  return JSON.stringify(Object.fromEntries(await Promise.all(templates)));
}

/** Stores keys of the account's user, oldest first, without their values: a key's digest is the one of its ID, which is also its name. */
export async function insertKeys(
  direct: DirectAccess,
  { account, partner, users }: Tenants,
  ids: readonly string[],
  more: Partial<ApiKeyRow> = {},
) {
  const rows = ids.map((id, n) => ({
    ...{ id, digest: toDigest(id), name: id, creator_id: users.account.id, creator_partner_id: partner.id },
    ...{ account_id: account.id, partner_id: partner.id, created_at: instant(n + 1), ...more },
  }));
  await insertRows(direct, 'api_keys', rows);
}

/** Stores calls in the tenants' campaign, without a request. Each call's ID is also its request ID. By default, the calls are due now. */
export async function insertCalls(direct: DirectAccess, tenants: Tenants, ids: readonly string[], more: Partial<CallRow> = {}) {
  const now = direct.ports.clock.now();
  const rows = ids.map((id) => ({
    ...{ contact_id: id, request_id: id, campaign_id: tenants.campaign.id, account_id: tenants.account.id, api_key_id: 'key' },
    ...{ state: 'queued' as const, phone: '+493012345678', placed_at: now, due_at: now, ...more },
  }));
  await insertRows(direct, 'calls', rows);
}

/** Stores rows that have the same columns. */
export function insertRows({ storage }: DirectAccess, table: 'api_keys' | 'calls', rows: readonly object[]): Promise<void> {
  return insertAsJson(storage.database.write, storage.database.kind, table, rows);
}

/** For thousands of rows, knex would take seconds to write the statement. */
async function insertAsJson(knex: Knex, kind: DatabaseKind, table: string, rows: readonly object[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {});
  const values =
    kind === 'postgres'
      ? `${columns} FROM json_populate_recordset(NULL::${table}, ?)`
      : `${columns.map((column) => `value->>'${column}'`)} FROM json_each(?)`;
  for (let from = 0; from < rows.length; from += 1_000)
    await knex.raw(`INSERT INTO ${table} (${columns}) SELECT ${values}`, [JSON.stringify(rows.slice(from, from + 1_000))]);
}

/** An authenticator app with one secret. `code` returns the code of the current time step, or of one that many steps later. */
export type Authenticator = { secret: string; code(stepsAhead?: number): string };

export function authenticator(secret: string, now: () => number = Date.now): Authenticator {
  const bytes = fromBase32(secret);
  return { secret, code: (stepsAhead = 0) => codeAt(bytes, Math.floor(now() / totp.stepMs) + stepsAhead) };
}

/**
 * Sets up a second factor for a signed-in user. If a clock is given, advances it by two time steps of 30 seconds, so that the app shows a
 * new code. Otherwise, the next valid code is that of the next time step.
 */
export async function enroll(url: string, cookie: string, clock?: FakeClock): Promise<{ app: Authenticator; recoveryCodes: string[] }> {
  const begun = await ask('POST', `${url}/console/second-factor`, { cookie, body: { currentPassword: password } });
  const app = authenticator(textAt(begun, 'secret'), clock?.now);
  const confirmed = await ask('POST', `${url}/console/second-factor/confirmation`, { cookie, body: { code: app.code() } });
  if (confirmed.status !== 200) throw new Error(`Setting up a second factor failed: ${confirmed.status} ${confirmed.text}`);
  clock?.advance({ seconds: 60 });
  return { app, recoveryCodes: recoveryCodesIn(confirmed.json) };
}

export function recoveryCodesIn(json: Readonly<Record<string, unknown>>): string[] {
  const { recoveryCodes } = json;
  return Array.isArray(recoveryCodes) ? recoveryCodes.map(String) : [];
}

function fromBase32(text: string): Buffer {
  const bits = Array.from(text, (letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')).join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
