import { CliHome } from './cli.ts';
import { type CoreHarness, openCore } from './core-harness.ts';
import { type FaultyProxy, faultyProxy } from './faulty-proxy.ts';
import { createKey, signIn } from './tenants.ts';

/** A core on SQLite that doesn't dial, Ada's key for its campaigns, and what an integrator uses to reach it. */
type Integrator = Readonly<Omit<CoreHarness, 'close'>> & {
  readonly key: string;
  /** The network between the client and the core. No test is affected by the faults of an earlier one. */
  readonly network: FaultyProxy;
  /** A new home for each test, with the key and the core's address in its environment. */
  readonly home: CliHome;
};

/** Shares one integrator between all tests of a suite. Its properties are available from the suite's first hook on. */
export function sharedIntegrator(): Integrator {
  let shared: Opened | undefined;
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
    await shared?.close();
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

type Opened = Omit<Integrator, 'home'> & Pick<CoreHarness, 'close'>;

async function openIntegrator(): Promise<Opened> {
  const harness = await openCore({ environment: { DIALER: 'off' } });
  const { url } = harness.core;
  const { keyValue: key } = await createKey(url, await signIn(url, 'ada@example.com'));
  return { ...harness, key, network: await faultyProxy(url) };
}

function there<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new Error('The integrator exists only in hooks and tests.');
  return part;
}
