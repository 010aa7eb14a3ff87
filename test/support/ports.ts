import type { Viewer } from '../../core/domain/model.ts';
import type { Passwords, Ports, Stores, TenancyStore, ThrottleStore } from '../../core/domain/ports.ts';
import { Problem } from '../../core/domain/problem.ts';
import { fakeClock, unknownIds } from './clock.ts';

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
    stores: {
      apiKeys: some('apiKeys', stores.apiKeys),
      calls: some('calls', stores.calls),
      sessions: some('sessions', stores.sessions),
      links: some('links', stores.links),
      secondFactors: some('secondFactors', stores.secondFactors),
      users: some('users', stores.users),
      tenancies: some('tenancies', stores.tenancies),
      directory: some('directory', stores.directory),
      callList: some('callList', stores.callList),
      activity: some('activity', stores.activity),
      dialing: some('dialing', stores.dialing),
      retention: some('retention', stores.retention),
      auditChain: some('auditChain', stores.auditChain),
      contacts: some('contacts', stores.contacts),
      protection: some('protection', stores.protection),
      clock: some('clock', stores.clock),
    },
    identityProvider: null,
    passwordSignIn: true,
    secretBox: { newest: '', seal: (_, secret) => Buffer.from(secret).toString('hex'), open: (_, sealed) => Buffer.from(sealed, 'hex') },
    requiresSecondFactor: false,
    maxActiveKeys: 1_000,
    adminCommand: 'callkey-admin',
    onOutcome: () => undefined,
    onStopped: () => undefined,
    onDoNotCallAdded: () => undefined,
    onHoursChanged: () => undefined,
  };
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

/** The accounts `a1` and `a3` of the partner `p1`, and the account `a2` of the partner `p2`. */
export const tenancies: Partial<TenancyStore> = {
  findAccount: async (id) =>
    ({ a1: account, a2: { id: 'a2', name: 'Red Garage', partnerId: 'p2' }, a3: { ...account, id: 'a3' } })[id] ?? null,
  findTenancy: async ({ kind, id }) => {
    const of = { partnerId: partner.id, partnerName: partner.name };
    return { a1: { kind, ...account, ...of }, p1: { kind, ...partner, ...of } }[id] ?? null;
  },
  findPartner: async (id) => ({ p1: partner, p2: { id: 'p2', name: 'Southgate Calling' } })[id] ?? null,
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
