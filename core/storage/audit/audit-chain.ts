import { chainHash } from '../../domain/audit/audit-chain.ts';
import type { Millis } from '../../domain/instant.ts';
import type { ChainedEvent } from '../../domain/model.ts';
import type { AuditChainStore } from '../../domain/ports.ts';
import { inShortTransactions } from '../engine/chunks.ts';
import { required } from '../engine/columns.ts';
import type { Lanes } from '../engine/database.ts';
import type { AuditEventRow } from '../engine/tables.ts';

/** Small, because rows are changed one at a time, and other writers of a SQLite file should wait for only a few milliseconds. */
const chainBatchSize = 200;
const pruneBatchSize = 500;

/** Reads both ends in one statement, because a core may be extending the chain. */
const chainEnds = `SELECT seq, hash, pruned_seq AS "prunedSeq", pruned_hash AS "prunedHash",
  (SELECT max(seq) FROM audit_events WHERE seq IS NOT NULL) AS "lastSeq" FROM audit_chain`;

export function auditChainStore({ background: { read, write, query } }: Lanes): AuditChainStore {
  return {
    async extend(signal) {
      if ((await read('audit_events').whereNull('seq').first('id')) === undefined) return 0;
      const extendBatch = (limit: number) =>
        write.transaction(async (trx) => {
          // Lock the row, because two processes that chain the same events would break the chain.
          const newest = await trx('audit_chain').forUpdate().first('seq', 'hash');
          let { seq, hash } = required(newest ?? null, 'the chain');
          const rows: AuditEventRow[] = await trx('audit_events').whereNull('seq').orderBy('id').limit(limit);
          for (const row of rows) {
            seq++;
            hash = chainHash(hash, seq, toFields(row));
            await trx('audit_events').where({ id: row.id }).update({ seq, hash });
          }
          await trx('audit_chain').update({ seq, hash });
          return rows.length;
        });
      return inShortTransactions(extendBatch, chainBatchSize, signal);
    },

    async state() {
      const [[row], counted] = await Promise.all([
        query<{ seq: number; hash: string; prunedSeq: number; prunedHash: string; lastSeq: number | null }>(chainEnds, []),
        read('audit_events').whereNull('seq').count({ events: '*' }).first<{ events: number | string }>(),
      ]);
      return { ...required(row ?? null, 'the chain'), unchained: Number(counted.events) };
    },

    async read(after, last, limit) {
      const rows: AuditEventRow[] = await read('audit_events')
        .where('seq', '>', after)
        .where('seq', '<=', last)
        .orderBy('seq')
        .limit(limit);
      return rows.map(chainedEvent);
    },

    async oldestAt() {
      const [oldest]: { at: Millis }[] = await read('audit_events').whereNotNull('seq').orderBy('seq').limit(1).select('at');
      return oldest?.at ?? null;
    },

    async prune(last, signal) {
      const pruneBatch = (limit: number) =>
        write.transaction(async (trx) => {
          await trx('audit_chain').forUpdate().first('seq');
          const rows: AuditEventRow[] = await trx('audit_events').where('seq', '<=', last).orderBy('seq').limit(limit);
          const newest = rows.at(-1);
          if (!newest) return 0;
          const { seq, hash } = chainedEvent(newest);
          await trx('audit_chain').update({ pruned_seq: seq, pruned_hash: hash });
          const deleted: number = await trx('audit_events').where('seq', '<=', seq).delete();
          return deleted;
        });
      return inShortTransactions(pruneBatch, pruneBatchSize, signal);
    },
  };
}

function chainedEvent(row: AuditEventRow): ChainedEvent {
  const { seq = null, hash, at } = row;
  // The hash is missing only if someone has removed it. No event matches an empty hash, so the chain is then reported as broken.
  return { seq: required(seq, 'seq'), hash: hash ?? '', at, fields: toFields(row) };
}

/**
 * Returns the columns that events have had since the first release, followed by those added later, unless they're null. The order must
 * never change, because every hash would change with it.
 */
function toFields(row: AuditEventRow): ChainedEvent['fields'] {
  const { id, at, actor_id, actor_name, action, subject_kind, subject_id, subject_name, account_id, partner_id, address, detail } = row;
  const fields = [id, at, actor_id, actor_name, action, subject_kind, subject_id, subject_name, account_id, partner_id, address];
  return detail === null ? fields : [...fields, detail];
}
