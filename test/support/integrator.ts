import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { CliHome, type HereOptions } from './cli.ts';
import type { OnWait } from './clock.ts';
import type { Ended } from './commands.ts';
import { openCore } from './core.ts';
import { faultyProxy } from './proxies.ts';
import { openOnce } from './suites.ts';
import { createKey, signIn } from './tenants.ts';

/** Opens a core on SQLite that doesn't dial, a key of Ada's, and what an integrator uses to reach it. */
async function openIntegrator() {
  const harness = await openCore();
  const { url } = harness.core;
  const { keyValue: key } = await createKey(url, await signIn(url, 'ada@example.com'));
  const network = await faultyProxy(url);
  /** Creates a home folder, with the key and the core's address in its environment. */
  const newHome = () => new CliHome({ CALLKEY_API_KEY: key, CALLKEY_SERVER: network.url });
  return {
    ...{ ...harness, key, network, newHome, home: newHome() },
    async close() {
      await network.close();
      await harness.close();
    },
  };
}

/** Shares one integrator between all tests of a suite. Each test has its own home, and is affected by no faults of an earlier test. */
export function sharedIntegrator() {
  const its = openOnce(openIntegrator);
  beforeEach(() => {
    its.home = its.newHome();
    its.network.seen.length = 0;
    its.network.faults.length = 0;
  });
  return its;
}

const unauthorized = { type: 'urn:callkey:problems#unauthorized', title: 'x', status: 401, detail: 'unauthorized' };
/** The core's response. Without a body, it would be a proxy's, which doesn't say whether the call was placed. */
export const keyRejected = { status: 401, body: JSON.stringify(unauthorized) };
const doNotCall = { type: 'urn:callkey:problems#do-not-call', title: 'x', status: 403, detail: 'On a list.' };
export const onDoNotCallList = { status: 403, body: JSON.stringify(doNotCall) };

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
    placeHere: (path: string, more: string[] = [], onWait?: OnWait) => its.home.runHere(placing(path, more), onWait),
    ...{ listRuns, newestRun },
    cancelRun: async (...more: string[]) => its.home.run(['call', 'cancel', '--run', await newestRun(), ...more]),
    cancelRunHere: async (onWait?: OnWait, options?: HereOptions) =>
      its.home.runHere(['call', 'cancel', '--run', await newestRun()], onWait, options),
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
    placeHere: (phone: string, onWait?: OnWait) => its.home.runHere(['call', 'place', its.tenants.campaign.id, '--phone', phone], onWait),
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
