import type { AuditEvent, Credentials, Session, User, Viewer } from '../../core/domain/model.ts';
import type { DirectoryStore, NewUser, Passwords, Ports, Stores, ThrottleStore, UserStore } from '../../core/domain/ports.ts';
import { Problem } from '../../core/domain/problem.ts';
import { argon2Passwords } from '../../core/server/passwords.ts';
import { fakeClock, testRandomness, unknownIds } from './clock.ts';
import { until } from './until.ts';

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

/** Returns the product's own hashing, but with hashes as cheap as argon2 allows. */
export const cheapPasswords = (): Passwords => argon2Passwords(testRandomness, { memoryCost: 8, timeCost: 2 });

/** Returns cheap hashing whose turns a test can hold up, so that many requests wait for one. */
export function heldPasswords() {
  const passwords = cheapPasswords();
  let asked = 0;
  let released = Promise.resolve();
  return {
    passwords: {
      hash: (password) => passwords.hash(password),
      verify(find, ...args) {
        asked++;
        const held = released;
        return passwords.verify(() => held.then(find), ...args);
      },
    } satisfies Passwords,
    /** Holds up the first of these requests until all of them have asked for a turn. @returns their responses */
    async together<Answer>(requests: readonly (() => Promise<Answer>)[]): Promise<Answer[]> {
      const { promise, resolve } = Promise.withResolvers<void>();
      const last = asked + requests.length;
      released = promise;
      const answers = requests.map((send) => send());
      await until(() => asked === last);
      released = Promise.resolve();
      resolve();
      return Promise.all(answers);
    },
  };
}

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
