import type { ContactCall, ContactStore } from '../../domain/ports.ts';
import { recordAudit } from '../audit/audit.ts';
import { groupByLane, inCallLanes } from '../engine/call-lanes.ts';
import { inChunks, type Lane } from '../engine/database.ts';
import { emptyLog } from '../engine/sqlite/sqlite.ts';
import type { CallRow } from '../engine/tables.ts';
import { type CallKeyPair, cancelFound, selectAmong, storedCall } from '../queue/queue.ts';
import { erasedColumns } from './retention.ts';

/** How many calls one statement reads. There's no index by phone number, and reading millions would take longer than a statement may. */
const lookupBatchSize = 20_000;

type FoundRow = CallRow & { campaign_name: string; account_name: string };

export function contactStore(database: Lane, atOnce = lookupBatchSize): ContactStore {
  return {
    async findCalls(phone) {
      const found = await inCallLanes(database, async (lane) => {
        const calls: ContactCall[] = [];
        for (let after: Position | undefined = ['', '']; after; ) {
          const last: Position | undefined = await positionAfter(lane, after, atOnce);
          calls.push(...(await callsBetween(lane, phone, after, last)));
          after = last;
        }
        return calls;
      });
      return found.flat().toSorted((a, b) => a.placedAt - b.placedAt);
    },

    async erase(calls, at, toEvent) {
      let cancelled = 0;
      let erased = 0;
      for (const [lane, own] of groupByLane(database, calls, ({ campaignId }) => campaignId)) {
        for (const chunk of inChunks(own)) {
          const keys = chunk.map(({ campaignId, contactId }): CallKeyPair => [campaignId, contactId]);
          await lane.write.transaction(async (trx) => {
            cancelled += await cancelFound(lane, keys, { at, locked: 'wait' }, trx);
            const count = await selectAmong(trx, keys).whereNotNull('ended_at').update(erasedColumns);
            if (count > 0) await recordAudit(trx, toEvent(count));
            erased += count;
          });
        }
      }
      if (erased > 0) await emptyLog(database);
      return { cancelled, erased };
    },
  };
}

/** A position in the order of the table's key. */
type Position = readonly [campaignId: string, contactId: string];

async function positionAfter(database: Lane, after: Position, rows: number): Promise<Position | undefined> {
  const [row] = await database.query<{ campaign_id: string; contact_id: string }>(
    `SELECT campaign_id, contact_id FROM calls WHERE (campaign_id, contact_id) > (?, ?) ORDER BY campaign_id, contact_id LIMIT 1 OFFSET ?`,
    [...after, rows - 1],
  );
  return row && [row.campaign_id, row.contact_id];
}

async function callsBetween(database: Lane, phone: string, after: Position, last: Position | undefined): Promise<ContactCall[]> {
  const until = last ? 'AND (campaign_id, contact_id) <= (?, ?)' : '';
  const rows = await database.query<FoundRow>(
    `WITH found AS MATERIALIZED (SELECT * FROM calls WHERE (campaign_id, contact_id) > (?, ?) ${until} AND phone = ?)
     SELECT found.*, c.name AS campaign_name, a.name AS account_name
     FROM found JOIN campaigns c ON c.id = found.campaign_id JOIN accounts a ON a.id = found.account_id`,
    [...after, ...(last ?? []), phone],
  );
  return rows.map(contactCall);
}

function contactCall(row: FoundRow): ContactCall {
  return {
    ...storedCall(row),
    campaignName: row.campaign_name,
    accountName: row.account_name,
    state: row.state,
    dialedAt: row.dialed_at,
    endedAt: row.ended_at,
    durationSeconds: row.duration_seconds,
    detail: row.detail,
  };
}
