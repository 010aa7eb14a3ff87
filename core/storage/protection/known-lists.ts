import type { Lane } from '../engine/database.ts';
import { inChunks } from '../engine/database.ts';
import { type NumberFilter, numberFilter } from './number-filter.ts';

/** In ms. The lists are refreshed only while calls are placed. */
const refreshEvery = 200;
const numbersPerRead = 5_000;
const additionsPerRead = 20;
const minFilterSize = 4_000;
/** All filters together take at most 30 MB. If a partner's lists no longer fit, the numbers of all of the partner's calls are looked up. */
const maxNumbers = 20_000_000;
const maxCampaigns = 10_000;

/** The lists of a partner and its accounts. The filter, if any, has all entries of this version. */
type Lists = { partnerId: string; version: number; filter: NumberFilter | null };

/**
 * Remembers which numbers may be on do-not-call lists, because looking one up among ten million takes a third of the time of a placed call
 * on SQLite. This only saves the lookup: the statement that places a call skips it only if the version is still current.
 */
export type KnownLists = {
  /** Returns a version of the lists in which the number isn't listed, or null if there's none or it isn't known. */
  unlistedAt(campaignId: string, phone: string): number | null;
  /** Reads what has changed in the lists that are in use. Runs automatically while calls are placed. */
  refresh(): Promise<void>;
  close(): Promise<void>;
};

export function knownLists(database: Lane): KnownLists {
  const { read } = database;
  const byPartner = new Map<string, Lists>();
  const byCampaign = new Map<string, Lists | null>();
  const newCampaigns = new Set<string>();
  let room = maxNumbers;
  let isAsked = false;
  let isClosed = false;
  let refreshing: Promise<void> | undefined;

  async function findPartners(): Promise<void> {
    for (const ids of inChunks([...newCampaigns])) {
      const rows = await read('campaigns').join('accounts', 'accounts.id', 'campaigns.account_id').whereIn('campaigns.id', ids).select({
        id: 'campaigns.id',
        partnerId: 'accounts.partner_id',
      });
      for (const { id, partnerId } of rows) {
        const lists = byPartner.get(partnerId) ?? { partnerId, version: 0, filter: null };
        byPartner.set(partnerId, lists);
        byCampaign.set(id, lists);
      }
      for (const id of ids) newCampaigns.delete(id);
    }
  }

  async function refresh(): Promise<void> {
    await findPartners();
    for (const ids of inChunks([...byPartner.keys()])) {
      const rows = await read('partners').whereIn('id', ids).whereNotNull('do_not_call_version').select('id', 'do_not_call_version');
      for (const { id, do_not_call_version: version } of rows) {
        const lists = byPartner.get(id);
        if (!lists || version === null || lists.version === version) continue;
        if (!lists.filter || !(await addNewer(lists, lists.filter))) await fill(lists, version);
      }
    }
  }

  /**
   * Adds the numbers of some newer versions.
   * @returns false if some of them are no longer stored, or the filter is full
   */
  async function addNewer(lists: Lists, filter: NumberFilter): Promise<boolean> {
    const [same, ...newer] = await read('do_not_call_additions')
      .where({ partner_id: lists.partnerId })
      .where('version', '>=', lists.version)
      .orderBy('version')
      .limit(additionsPerRead);
    // The oldest additions are deleted first. So if the addition of the filter's version is still stored, all newer ones are, too.
    if (same?.version !== lists.version) return false;
    for (const { version, phones } of newer) {
      for (const phone of phones.split(' ')) filter.add(phone);
      lists.version = version;
    }
    return filter.count() <= filter.capacity;
  }

  /** @param version must have been committed before this is called, so that the filter gets all of its entries */
  async function fill(lists: Lists, version: number): Promise<void> {
    room += lists.filter?.capacity ?? 0;
    Object.assign(lists, { version: 0, filter: null });
    let count = 0;
    for await (const chunk of chunks(lists.partnerId, 'count(*)')) count += Number(chunk);
    const capacity = Math.max(minFilterSize, Math.ceil(count * 1.25));
    if (capacity > room) {
      byPartner.delete(lists.partnerId);
      return;
    }
    const filter = numberFilter(capacity);
    // Select the numbers as one text, because drivers take much longer to read thousands of rows.
    for await (const phones of chunks(lists.partnerId, "string_agg(phone, ' ')"))
      for (const phone of String(phones).split(' ')) filter.add(phone);
    room -= capacity;
    Object.assign(lists, { version, filter });
  }

  /** Reads a partner's entries in order, in short statements. @param select the SQL of an aggregate @returns its value for each chunk */
  async function* chunks(partnerId: string, select: string): AsyncGenerator<string | number> {
    for (let after = ''; ; ) {
      const [chunk] = await database.query<{ last: string | null; found: string | number }>(
        `SELECT max(phone) AS last, ${select} AS found FROM (
           SELECT phone FROM do_not_call WHERE partner_id = ? AND phone > ? ORDER BY phone LIMIT ${numbersPerRead}
         ) AS chunk`,
        [partnerId, after],
      );
      if (isClosed) throw new Error('The storage was closed.');
      if (!chunk || chunk.last === null) return;
      yield chunk.found;
      after = chunk.last;
    }
  }

  const timer = setInterval(() => {
    if (!isAsked || refreshing) return;
    isAsked = false;
    // Ignore errors, because with an outdated version, the statement that places a call looks up the number itself.
    refreshing = refresh()
      .catch(() => undefined)
      .finally(() => {
        refreshing = undefined;
      });
  }, refreshEvery).unref();

  return {
    refresh,
    async close() {
      clearInterval(timer);
      isClosed = true;
      await refreshing;
    },
    unlistedAt(campaignId, phone) {
      isAsked = true;
      const lists = byCampaign.get(campaignId);
      if (lists === undefined) {
        if (byCampaign.size >= maxCampaigns) byCampaign.clear();
        byCampaign.set(campaignId, null);
        newCampaigns.add(campaignId);
      }
      return lists?.filter && !lists.filter.mayHave(phone) ? lists.version : null;
    },
  };
}
