import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { CliHome } from './cli.ts';
import type { Ended } from './commands.ts';
import { type CoreHarness, openCore } from './core.ts';
import { type FaultyProxy, faultyProxy } from './proxies.ts';
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
  const harness = await openCore();
  const { url } = harness.core;
  const { keyValue: key } = await createKey(url, await signIn(url, 'ada@example.com'));
  return { ...harness, key, network: await faultyProxy(url) };
}

function there<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new Error('The integrator exists only in hooks and tests.');
  return part;
}

const unauthorized = { type: 'urn:callkey:problems#unauthorized', title: 'x', status: 401, detail: 'unauthorized' };
/** The core's response. Without a body, it would be a proxy's, which doesn't say whether the call was placed. */
export const keyRejected = { status: 401, body: JSON.stringify(unauthorized) };

/** Returns what the tests of call files share. Each test has phone numbers that no other test of its suite uses. */
export function callFiles(its: ReturnType<typeof sharedIntegrator>) {
  let test = 0;
  beforeEach(() => {
    test++;
  });
  const phone = (n: number) => `+4930${10_000_000 + test * 100_000 + n}`;
  const file = (text: string | Buffer, name = 'contacts.csv') => {
    const path = join(its.home.directory, name);
    writeFileSync(path, text);
    return path;
  };
  const placing = (path: string, more: readonly string[]) => ['call', 'place', its.tenants.campaign.id, '--from', path, ...more];
  const listRuns = async () => JSON.parse((await its.home.run(['call', 'runs', '--json'])).stdout).runs;
  const newestRun = async (): Promise<string> => (await listRuns())[0].run;
  return {
    phone,
    /** A request ID, or a part of one, that no other test uses. */
    own: () => `own-${test}`,
    createCsv: (count: number, from = 0) =>
      ['phone,name', ...Array.from({ length: count }, (_, n) => `${phone(from + n)},Ada ${from + n}`)].join('\n'),
    phones: (count: number) => Array.from({ length: count }, (_, n) => phone(n)),
    file,
    /** @returns the path of a file with one phone number per line */
    savePhones: (phones: readonly string[]) => file(['phone', ...phones, ''].join('\n')),
    place: (path: string, ...more: string[]) => its.home.run(placing(path, more)),
    started: (path: string, ...more: string[]) => its.home.start(placing(path, more)),
    ...{ listRuns, newestRun },
    cancelRun: async (...more: string[]) => its.home.run(['call', 'cancel', '--run', await newestRun(), ...more]),
    /** Returns the number of calls to each of this test's phone numbers. */
    async calls(): Promise<number[]> {
      const rows: { phone: string | null }[] = await its.direct.storage.database
        .read('calls')
        .where('phone', 'like', `${phone(0).slice(0, -5)}%`);
      return [...Map.groupBy(rows, (row) => row.phone).values()].map(({ length }) => length);
    },
    states: (phones: readonly string[]): Promise<string[]> =>
      its.direct.storage.database.read('calls').whereIn('phone', phones).pluck('state'),
    allCancelled: (count: number) => Array.from({ length: count }, () => 'cancelled'),
    onceEach: (count: number) => Array.from({ length: count }, () => 1),
  };
}

/** Returns what tests of single calls share: the commands in the test's home, and what the core and the network saw of them. */
export function singleCalls(its: ReturnType<typeof sharedIntegrator>) {
  return {
    place: (phone: string, ...more: string[]) => its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', phone, ...more]),
    cancel: (...more: string[]) => its.home.run(['call', 'cancel', its.tenants.campaign.id, ...more]),
    callsTo: (phone: string) => its.direct.storage.database.read('calls').where({ phone }),
    sentIds: () => its.network.seen.map(({ body }) => String(JSON.parse(body).requestId)),
    /** Returns the result of a command with --json. */
    answer({ code, stdout, stderr }: Ended, expected = 0) {
      expect(code, stderr).to.equal(expected);
      return JSON.parse(stdout);
    },
  };
}
