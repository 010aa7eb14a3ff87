import { digestOf } from '../../core/domain/api-keys.ts';
import type { DatabaseKind } from '../../test/support/databases.ts';
import { ask } from '../../test/support/http.ts';
import { signIn } from '../../test/support/tenants.ts';
import { manyKeys, openStage, type Stage } from './environment.ts';
import { cancelling, placing } from './requests.ts';
import { fill } from './seed.ts';
import { type Spread, spreadOf } from './workloads.ts';
import { load } from './wrk.ts';

const sizes = [1_000, 100_000, 1_000_000, 10_000_000];

/** What a core does in a second with so many keys and as many calls in its tables. */
export type Grown = { database: DatabaseKind; size: number; place: Spread; refuse: Spread; cancel: Spread };

/** How long the list of the newest 500 keys takes, in ms, where there are 500 and where there are a million. */
export type Lists = { database: DatabaseKind; of500: Spread; ofMillion: Spread };

/** A database of each size, and all of them measured in turn: what the machine does meanwhile hits all alike. */
export async function grow(kind: DatabaseKind, rounds: number, seconds: number, say: (line: string) => void): Promise<Grown[]> {
  const stages: { size: number; stage: Stage; perSecond: { place: number[]; refuse: number[]; cancel: number[] } }[] = [];
  for (const size of sizes) {
    const stage = await openFilled(kind, size, say);
    stages.push({ size, stage, perSecond: { place: [], refuse: [], cancel: [] } });
  }
  try {
    for (let round = 0; round <= rounds; round++) {
      for (const { size, stage, perSecond } of stages) {
        const { core, path, keys, unknown } = stage;
        const place = await load(placing(core.url, path, keys), seconds);
        const refuse = await load(placing(core.url, path, unknown, 0), seconds);
        const cancel = await load(cancelling(core.url, path, keys[0] ?? ''), seconds, await stage.queue(seconds * 50_000));
        say(`round ${round}: ${kind}, ${size}: place ${place.perSecond}/s, refuse ${refuse.perSecond}/s, cancel ${cancel.perSecond}/s`);
        // In the first round, code and caches get warm.
        if (round === 0) continue;
        perSecond.place.push(place.perSecond);
        perSecond.refuse.push(refuse.perSecond);
        perSecond.cancel.push(cancel.perSecond);
      }
    }
    return stages.map(({ size, perSecond: { place, refuse, cancel } }) => ({
      ...{ database: kind, size },
      ...{ place: spreadOf(place), refuse: spreadOf(refuse), cancel: spreadOf(cancel) },
    }));
  } finally {
    for (const { stage } of stages) await stage.close();
  }
}

async function openFilled(kind: DatabaseKind, size: number, say: (line: string) => void): Promise<Stage> {
  const stage = await openStage(kind);
  const { account, campaign, partner } = stage.tenants;
  const start = performance.now();
  const owner = { accountId: account.id, campaignId: campaign.id, partnerId: partner.id, keyId: '' };
  await fill(stage.direct.storage.database, stage.database, size, owner);
  say(`${kind}: ${size} keys and calls made in ${Math.round((performance.now() - start) / 1_000)} s`);
  return stage;
}

/** Lists the keys of a partner with a million of them, and of another one, who is given 500, on the same core. */
export async function listKeys(kind: DatabaseKind, rounds: number, say: (line: string) => void): Promise<Lists> {
  const stage = await openFilled(kind, 1_000_000, say);
  const { core, direct, tenants } = stage;
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
  await stage.close();
  return { database: kind, of500: spreadOf(taken.few), ofMillion: spreadOf(taken.many) };
}
