import { operator } from '../../core/domain/audit/audit.ts';
import { type ImportFile, importAll, importFileSchema } from '../../core/domain/directory/import.ts';
import type { AuditEvent, Credentials, Session, User, Viewer } from '../../core/domain/model.ts';
import type {
  DirectoryStore,
  ImportedEntity,
  ImportKind,
  ImportStore,
  NewUser,
  Passwords,
  Ports,
  Stores,
  ThrottleStore,
  UserStore,
} from '../../core/domain/ports.ts';
import { Problem } from '../../core/domain/problem.ts';
import { argon2Passwords } from '../../core/server/passwords.ts';
import { fakeClock, testRandomness, unknownIds } from './clock.ts';

/** Stores with only the methods that the rule under test calls; any other one fails. */
type SomeStores = { [Name in keyof Stores]?: Partial<Stores[Name]> };

/**
 * Creates ports without a database, for testing the rules alone: IDs are numbered, hashes contain their passwords, and every password is
 * wrong.
 */
export function fakePorts({
  stores = {},
  throttle = {},
  passwords = {},
}: {
  stores?: SomeStores;
  throttle?: Partial<ThrottleStore>;
  passwords?: Partial<Passwords>;
} = {}): Ports {
  let ids = 0;
  return {
    clock: fakeClock(),
    randomness: {
      bytes: (size) => Uint8Array.from({ length: size }, (_, index) => index),
      id: () => `id${++ids}`,
      idsAround: () => unknownIds,
    },
    passwords: {
      hash: async (password) => `hash of ${password}`,
      verify: async (find) => {
        await find();
        return null;
      },
      ...passwords,
    },
    throttle: some('throttle', throttle),
    stores: someStores(stores),
    identityProvider: null,
    passwordSignIn: true,
    serverName: 'calls.example.com',
    secretBox: { newest: '', seal: (_, secret) => Buffer.from(secret).toString('hex'), open: (_, sealed) => Buffer.from(sealed, 'hex') },
    requiresSecondFactor: false,
    maxActiveKeys: 1_000,
    adminCommand: 'callkey-admin',
    onOutcome: () => undefined,
    onStopped: () => undefined,
    onDoNotCallAdded: () => undefined,
    onRulesChanged: () => undefined,
    onCallsLeft: () => undefined,
  };
}

function someStores(stores: SomeStores): Stores {
  return new Proxy(stores, {
    get: (_, name: keyof Stores) => some<object>(name, stores[name]),
  }) as Stores;
}

function some<Store extends object>(name: string, methods: Partial<Store> = {}): Store {
  return new Proxy(methods, {
    get(target, method) {
      const property: unknown = Reflect.get(target, method);
      if (property === undefined) throw new Error(`The test has no ${name}.${String(method)}.`);
      return property;
    },
  }) as Store;
}

const account = { id: 'a1', name: 'Blue Clinic', partnerId: 'p1' };
const partner = { id: 'p1', name: 'Northwind Voice' };
const user = (id: string, name: string, more: Partial<Viewer>): Viewer => ({
  ...{ id, name, email: `${id}@example.com`, userType: 'staff', account: null, partner: null, tenancy: null },
  ...more,
});

/** One user of each type. */
export const viewers = {
  account: user('ada', 'Ada Account', { userType: 'account', account }),
  partner: user('pat', 'Pat Partner', { userType: 'partner', partner }),
  tied: user('tia', 'Tia Tied', { userType: 'partner', account, partner }),
  staff: user('stan', 'Stan Staff', {}),
  staffInAccount: user('stan', 'Stan Staff', { tenancy: { kind: 'account', ...account, partnerName: partner.name } }),
};

/** What the store knows about how a user signs in: with a password, whose hash is `hash`. */
export function credentialsOf(user: User, changes: Partial<Credentials> = {}): Credentials {
  return {
    ...{ user, passwordHash: 'hash', passwordExpiresAt: null, disabledAt: null, hasSecondFactor: false, signInVersion: '' },
    ...changes,
  };
}

/** A session of a user who signed in with a password, which began now. */
export function sessionOf(user: User, changes: Partial<Session> = {}): Session {
  const now = fakeClock().now();
  return {
    ...{ user, tenancy: null, passwordChangeDue: false, issuer: null, hasSecondFactor: false, halfOpenUntil: null },
    ...{ beganWithLink: false, signInVersion: '', startedAt: now, lastSeenAt: now },
    ...changes,
  };
}

/** The accounts `a1` and `a3` of the partner `p1`, and the account `a2` of the partner `p2`. */
export const directory: Partial<DirectoryStore> = {
  findTenancy: async ({ kind, id }) => {
    const of = { partnerId: partner.id, partnerName: partner.name };
    const elsewhere = { partnerId: 'p2', partnerName: 'Southgate Calling' };
    const found = {
      ...{ a1: { ...account, ...of }, a2: { id: 'a2', name: 'Red Garage', ...elsewhere }, a3: { ...account, ...of, id: 'a3' } },
      ...{ p1: { ...partner, ...of }, p2: { id: 'p2', name: 'Southgate Calling', ...elsewhere } },
    }[id];
    return found?.id.startsWith(kind.slice(0, 1)) ? { kind, ...found } : null;
  },
};

/** Returns a problem as its caller sees it: `code at path: message`. */
export async function readProblem(doing: Promise<unknown>): Promise<string> {
  const error = await doing.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Problem)) return `no problem: ${String(error)}`;
  const where = error.errors?.map(({ path, message }) => (message === error.message ? ` at ${path}` : ` at ${path} (${message})`)) ?? [];
  return `${error.code}${where.join('')}: ${error.message}`;
}

/** Returns the product's own hashing, for tests in which many requests wait for it. A hash takes 20 ms of processor time. */
export const costlyPasswords = (): Passwords => argon2Passwords(testRandomness);

/** Returns the product's own hashing, but with hashes as cheap as argon2 allows. */
export const cheapPasswords = (): Passwords => argon2Passwords(testRandomness, { memoryCost: 8, timeCost: 2 });

/** Returns cheap hashing with a gate behind it, so that a test can make a change while a request waits for a password. */
export function gatedPasswords() {
  const passwords = cheapPasswords();
  let gate: { reach: () => void; opened: Promise<void> } | undefined;
  async function behindGate<Result>(result: Promise<Result>): Promise<Result> {
    await result.catch(() => undefined);
    gate?.reach();
    await gate?.opened;
    return result;
  }
  return {
    passwords: {
      hash: (password) => behindGate(passwords.hash(password)),
      verify: (...args) => behindGate(passwords.verify(...args)),
    } satisfies Passwords,
    /** Makes `change` once one of the requests that `send` sends waits for a password. @returns their responses */
    async whileWaiting<Answer>(send: () => Promise<Answer>, change: () => Promise<unknown>): Promise<Answer> {
      const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      gate = { reach: reached.resolve, opened: opened.promise };
      const answer = send();
      await Promise.race([reached.promise, answer]);
      gate = undefined;
      try {
        await change();
      } finally {
        opened.resolve();
      }
      return answer;
    },
  };
}

/** Creates a fake store for new users, which records what it stores. */
export function createUsers() {
  const created: NewUser[] = [];
  const events: AuditEvent[] = [];
  const create: UserStore['create'] = async (user, event) => {
    created.push(user);
    events.push(event);
  };
  return {
    ports: fakePorts({ stores: { users: { create }, directory }, throttle: { blockedUntil: async () => null, take: async () => true } }),
    created,
    events,
  };
}

type Step = { kind: ImportKind } & Parameters<ImportStore['write']>[1];

/** Creates a fake store in memory for what an import reads and writes. The write with this number, counted from one, fails. */
export function createImports(failingStep = 0, failure = new Error('The disk is full.')) {
  const entities: Record<ImportKind, Map<string, ImportedEntity>> = {
    partners: new Map(),
    accounts: new Map(),
    campaigns: new Map(),
    users: new Map(),
  };
  const steps: Step[] = [];
  const strangers = new Map<string, string | null>();
  const asked: string[][] = [];
  const imports: ImportStore = {
    find: async (kind, externalIds) => {
      asked.push([...externalIds]);
      return new Map([...entities[kind]].filter(([externalId]) => externalIds.includes(externalId)));
    },
    findEmails: async (emails) => {
      const owners = [...entities.users.values()].map(({ email, externalId }): [string, string | null] => [email ?? '', externalId]);
      return new Map([...owners, ...strangers].filter(([email]) => emails.includes(email)));
    },
    write: async (kind, step) => {
      if (steps.length + 1 === failingStep) throw failure;
      steps.push({ kind, ...step });
      for (const { entity } of [...step.added, ...step.changed]) entities[kind].set(entity.externalId, entity);
      return new Map();
    },
  };
  let pauses = 0;
  const run = (file: Partial<ImportFile>, pause: () => Promise<void> = async () => undefined) =>
    importAll(
      fakePorts(),
      imports,
      () => {
        pauses++;
        return pause();
      },
      operator.actor,
      importFileSchema.parse(file),
    );
  return { run, steps, strangers, asked, entities, pauses: () => pauses };
}

export const partners = [
  { externalId: 'p1', name: 'One' },
  { externalId: 'p2', name: 'Two' },
];
export const accounts = [{ externalId: 'a1', name: 'A', partner: 'p1' }];
export const campaigns = [{ externalId: 'c1', name: 'C', account: 'a1' }];
export const ada = { externalId: 'u1', email: 'ada@example.com', name: 'Ada', userType: 'account' as const, account: 'a1' };
export const pat = { externalId: 'u2', email: 'pat@example.com', name: 'Pat', userType: 'partner' as const, partner: 'p1' };
export const tia = { externalId: 'u3', email: 'tia@example.com', name: 'Tia', userType: 'partner' as const, partner: 'p1', account: 'a1' };
export const stan = { externalId: 'u4', email: 'stan@example.com', name: 'Stan', userType: 'staff' as const };
export const all = { partners, accounts, campaigns, users: [ada, pat, tia, stan] };
export const counts = (added: number, changed: number, unchanged: number) => ({ added, changed, unchanged });
