import type { UserType } from '#contract/console/common.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { deadlines } from '../../core/domain/deadlines.ts';
import { createAccount, createCampaign, createPartner } from '../../core/domain/directory/tenancies.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import type { Digest, KnownCaller } from '../../core/domain/model.ts';
import type { Clock } from '../../core/domain/ports/environment.ts';
import type { Ports } from '../../core/domain/ports/ports.ts';
import { createSecretBox } from '../../core/server/sealed-secrets.ts';
import { systemClock } from '../../core/server/start/system.ts';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openStorage, type Storage, unobserved } from '../../core/storage/index.ts';
import { fakeClock, testRandomness } from './clock.ts';
import { testSecret } from './core.ts';
import { type DatabaseKind, databases } from './databases.ts';
import { type Answer, ask, readCookies, textAt } from './http.ts';
import { cheapPasswords } from './passwords.ts';

export const password = 'correct horse battery staple';

/** Direct access to the database of a core under test. */
export type DirectAccess = { ports: Ports; storage: Storage; close(): Promise<void> };

export async function openDirect(databaseUrl: string, clock: Clock = systemClock): Promise<DirectAccess> {
  const location = parseDatabaseUrl(databaseUrl);
  if (!location) throw new Error(`${databaseUrl} names no database.`);
  const storage = openStorage(location, clock, unobserved);
  await storage.migrate();
  const ports: Ports = {
    clock,
    randomness: testRandomness,
    passwords: cheapPasswords(),
    throttle: storage.throttle,
    stores: storage.stores,
    provider: null,
    passwordSignIn: true,
    ...{ secretBox: createSecretBox([testSecret], testRandomness), requiresSecondFactor: false },
    maxActiveKeys: 1_000,
    onOutcome: () => undefined,
    onStopped: () => undefined,
    onListed: () => undefined,
  };
  return { ports, storage, close: () => storage.close() };
}

/**
 * Two partners. The first has two accounts with a campaign each, and users of every type, some of them twice. The second has one of each,
 * unrelated to the first. All users have the same password.
 */
export type Tenants = Awaited<ReturnType<typeof createTenants>>;

export async function createTenants(ports: Ports) {
  const partner = await createPartner(ports, operator, 'Northwind Voice');
  const otherPartner = await createPartner(ports, operator, 'Southgate Calling');
  const account = await createAccount(ports, operator, 'Blue Clinic', partner.id);
  const siblingAccount = await createAccount(ports, operator, 'Green Clinic', partner.id);
  const otherAccount = await createAccount(ports, operator, 'Red Garage', otherPartner.id);
  const campaign = await createCampaign(ports, operator, 'Appointment reminders', account.id);
  const siblingCampaign = await createCampaign(ports, operator, 'Recalls', siblingAccount.id);
  const otherCampaign = await createCampaign(ports, operator, 'Inspections', otherAccount.id);

  const user = async (email: string, name: string, userType: UserType, accountId: string | null, partnerId: string | null) => {
    const added = await createUser(ports, operator, { email: `${email}@example.com`, name, userType, accountId, partnerId }, password);
    return added.user;
  };
  return {
    partner,
    otherPartner,
    account,
    siblingAccount,
    otherAccount,
    campaign,
    siblingCampaign,
    otherCampaign,
    users: {
      account: await user('ada', 'Ada Account', 'account', account.id, null),
      teammate: await user('tom', 'Tom Teammate', 'account', account.id, null),
      sibling: await user('sue', 'Sue Sibling', 'account', siblingAccount.id, null),
      partner: await user('pat', 'Pat Partner', 'partner', null, partner.id),
      tied: await user('tia', 'Tia Tied', 'partner', account.id, partner.id),
      other: await user('oda', 'Oda Other', 'account', otherAccount.id, null),
      otherPartner: await user('otto', 'Otto Other', 'partner', null, otherPartner.id),
      staff: await user('stan', 'Stan Staff', 'staff', null, null),
    },
  };
}

/** Long before any test's clock. */
const createdAt = fakeClock('2026-01-01T00:00:00.000Z');

export const withTenants = databases('with tenants', async (databaseUrl) => {
  const direct = await openDirect(databaseUrl, createdAt);
  return createTenants(direct.ports).finally(() => direct.close());
});

/** A new database with the tenants. */
export async function databaseWithTenants(kind: DatabaseKind): Promise<{ database: string; tenants: Tenants }> {
  const { database, content: tenants } = await withTenants.copyOf(kind);
  return { database, tenants };
}

/** Signs in. @returns the session's cookie */
export async function signIn(url: string, email: string, withPassword = password): Promise<string> {
  const answer = await ask('POST', `${url}/console/session`, { body: { email, password: withPassword } });
  if (answer.status !== 201) throw new Error(`Signing in failed: ${answer.status} ${answer.text}`);
  return readCookies(answer);
}

/** Signs in with a one-time password, and replaces it with everyone else's password. @returns the session's cookie */
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

/** The caller with this key and the current time. */
export function toCaller(digest: Digest): KnownCaller {
  return { digest, deadline: performance.now() + deadlines.answer, address: '127.0.0.1', key: { expiresAt: null, limits: null } };
}

let callers = 0;

/** A phone number that no other call has. */
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
