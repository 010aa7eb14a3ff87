import { digestOf } from '../../core/domain/api-keys.ts';
import type { DatabaseKind } from '../../test/support/databases.ts';
import { ask } from '../../test/support/http.ts';
import { signIn } from '../../test/support/tenants.ts';
import { manyKeys, openStage, type Stage } from './environment.ts';
import { cancelling, placing } from './requests.ts';
import type { Scale } from './scale.ts';
import { type Spread, spreadOf } from './spread.ts';
import { cancelsPerSecond } from './workloads.ts';
import { type Load, load } from './wrk.ts';

export const operations = ['place', 'refuse', 'cancel'] as const;

/** What a core does in a second with so many keys and as many calls in its tables. */
export type Grown = { database: DatabaseKind; size: number } & Record<(typeof operations)[number], Spread>;

/** How long the list of the newest 500 keys takes, in ms, where there are 500 and where there are a million. */
export type Lists = { database: DatabaseKind; of500: Spread; ofMillion: Spread };

type Say = (line: string) => void;
/** In seconds: refused and cancelled calls vary less than placed ones. */
const shortLoad = 1;

type Filled = { size: number; stage: Stage; found: Record<(typeof operations)[number], Load>[] };

/** A database of each size. */
export async function openFilled(kind: DatabaseKind, scale: Scale, say: Say): Promise<Filled[]> {
  const filled: Filled[] = [];
  for (const size of scale.sizes) {
    const start = performance.now();
    const stage = await openStage(kind, size);
    await stage.queue((scale.rounds + 1) * shortLoad * cancelsPerSecond);
    say(`${kind}: ${size} keys and calls made in ${Math.round((performance.now() - start) / 1_000)} s`);
    filled.push({ size, stage, found: [] });
  }
  return filled;
}

/** Measures the sizes in turn, so that what the machine does meanwhile affects all alike, and closes them. */
export async function grow(filled: readonly Filled[], scale: Scale, say: Say): Promise<{ grown: Grown[]; lists: Lists[] }> {
  for (let round = 0; round <= scale.rounds; round++) {
    for (const { size, stage, found } of filled) {
      const loads = await loadEach(stage, scale.seconds, round);
      // In the first round, code and caches get warm.
      if (round > 0) found.push(loads);
      say(`round ${round}: ${stage.kind}, ${size}: ${operations.map((one) => `${one} ${Math.round(loads[one].perSecond)}/s`).join(', ')}`);
    }
  }
  const lists: Lists[] = [];
  for (const { size, stage } of filled) {
    if (size === scale.sizes[1]) lists.push(await listKeys(stage, scale.rounds));
    await stage.close();
  }
  const grown = filled.map(({ size, stage, found }) => {
    const of = (operation: (typeof operations)[number]) => spreadOf(found.map((loads) => loads[operation].perSecond));
    return { database: stage.kind, size, place: of('place'), refuse: of('refuse'), cancel: of('cancel') };
  });
  return { grown, lists };
}

async function loadEach({ core, path, keys, unknown }: Stage, seconds: number, round: number) {
  return {
    place: await load(placing(core.url, path, keys), seconds),
    refuse: await load(placing(core.url, path, unknown, 0), shortLoad),
    cancel: await load(cancelling(core.url, path, keys[0] ?? ''), shortLoad, round * shortLoad * cancelsPerSecond),
  };
}

/** Lists the keys of the partner with so many of them, and of another one, who is given 500, on the same core. */
async function listKeys({ kind, core, direct, tenants }: Stage, rounds: number): Promise<Lists> {
  const { users, otherAccount, otherPartner } = tenants;
  const rows = manyKeys(500).map((keyValue, n) => ({
    ...{ id: `other-${n}`, digest: digestOf(keyValue), name: 'Other', created_at: n },
    ...{ creator_id: users.other.id, creator_partner_id: otherPartner.id, account_id: otherAccount.id, partner_id: otherPartner.id },
  }));
  await direct.storage.database.write.batchInsert('api_keys', rows, 100);
  const cookies = { few: await signIn(core.url, 'otto@example.com'), many: await signIn(core.url, 'pat@example.com') };
  const taken = { few: [] as number[], many: [] as number[] };
  for (let n = 0; n < 10 * rounds; n++) {
    for (const who of ['few', 'many'] as const) {
      const from = performance.now();
      const { status } = await ask('GET', `${core.url}/console/api-keys`, { cookie: cookies[who] });
      if (status !== 200) throw new Error(`Listing keys answered ${status}.`);
      if (n >= rounds) taken[who].push(performance.now() - from);
    }
  }
  return { database: kind, of500: spreadOf(taken.few), ofMillion: spreadOf(taken.many) };
}
