import { CliHome } from './cli.ts';
import { type RunningCore, startCoreHere } from './core.ts';
import { freshDatabase } from './databases.ts';
import { type FaultyProxy, faultyProxy } from './faulty-proxy.ts';
import { createKey, createTenants, type DirectAccess, openDirect, signIn, type Tenants } from './tenants.ts';

/** What an integrator has, and a look at it from beside: a core on SQLite that dials nobody, and a key of Ada's for its campaigns. */
type Integrator = {
  readonly core: RunningCore;
  readonly database: string;
  readonly direct: DirectAccess;
  readonly tenants: Tenants;
  readonly key: string;
  /** The way to the core. No test finds what an earlier one left of it. */
  readonly network: FaultyProxy;
  /** A new one for each test, with the key and the way to the core in its environment. */
  readonly home: CliHome;
};

/** Has all tests of a suite share one. Its members are there from the first hook of the suite on. */
export function sharedIntegrator(): Integrator {
  let shared: Omit<Integrator, 'home'> | undefined;
  let home: CliHome | undefined;
  before(async () => {
    shared = await openIntegrator();
  });
  beforeEach(() => {
    const { key, network } = there(shared);
    home = new CliHome({ CALLKEY_API_KEY: key, CALLKEY_SERVER: network.url });
    network.seen.length = 0;
    network.faults.length = 0;
  });
  after(async () => {
    await shared?.network.close();
    await shared?.direct.close();
    await shared?.core.close();
  });
  return {
    get core() {
      return there(shared).core;
    },
    get database() {
      return there(shared).database;
    },
    get direct() {
      return there(shared).direct;
    },
    get tenants() {
      return there(shared).tenants;
    },
    get key() {
      return there(shared).key;
    },
    get network() {
      return there(shared).network;
    },
    get home() {
      return there(home);
    },
  };
}

async function openIntegrator(): Promise<Omit<Integrator, 'home'>> {
  const database = await freshDatabase('sqlite');
  const core = await startCoreHere(database, { environment: { DIALER: 'off' } });
  const direct = await openDirect(database);
  const tenants = await createTenants(direct.ports);
  const key = (await createKey(core.url, await signIn(core.url, 'ada@example.com'))).keyValue;
  return { core, database, direct, tenants, key, network: await faultyProxy(core.url) };
}

function there<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new Error('An integrator is there in hooks and tests alone.');
  return part;
}
