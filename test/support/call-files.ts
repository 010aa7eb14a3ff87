import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { sharedIntegrator } from './integrator.ts';

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
