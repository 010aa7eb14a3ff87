import type { ImportedNumber, ImportedNumbers } from '../../domain/model.ts';
import type { NumberImportStore } from '../../domain/ports/protection.ts';
import { Problem } from '../../domain/problem.ts';
import { recordAudit } from '../audit/audit.ts';
import { type Database, requireSeen } from '../engine/database.ts';
import { insertNumbers } from './added-numbers.ts';

/** In ms: about how long a batch of numbers may take, because on SQLite, placing a call waits for it. */
const stepTime = 10;
const minBatchSize = 100;
const maxBatchSize = 1_000;

export function numberImportStore(database: Database): NumberImportStore {
  const { read, write } = database;
  /** How many numbers the next batch moves. It depends on how long the last batch took, because a busy machine needs ten times as long. */
  let size = minBatchSize;
  return {
    async begin(id, entry, startedAt) {
      await write('number_imports').insert({ id, entry: JSON.stringify(entry), started_at: startedAt, committed_at: null });
    },

    async addPart(id, part, numbers) {
      await write.transaction(async (trx) => {
        // Lock the import. If a core has deleted it, don't add the part, because nothing would ever delete that part.
        if (!(await trx('number_imports').where({ id }).forUpdate().first())) throw deletedError();
        await trx('number_import_parts').insert({ import_id: id, part, phones: numbers.map(toLine).join('\n') });
      });
    },

    async commit(id, committedAt, event) {
      await write.transaction(async (trx) => {
        const committed = await trx('number_imports').where({ id }).update({ committed_at: committedAt });
        if (committed === 0) throw deletedError();
        await recordAudit(trx, event);
      });
    },

    async moveBatch(id, newId, now) {
      const begun = performance.now();
      const moved = await write.transaction(async (trx) => {
        // Lock the import, because a core and the command may both be moving its numbers.
        const stored = await trx('number_imports').where({ id }).forUpdate().first();
        const part = await trx('number_import_parts').where({ import_id: id }).orderBy('part').first();
        if (!stored || !part) return null;
        const phones = part.phones.split('\n');
        const entry: ImportedNumbers = JSON.parse(stored.entry);
        const started = performance.now();
        const numbers = phones.slice(0, size).map((line) => ({ id: newId(), ...fromLine(line) }));
        const { added } = await insertNumbers(trx, { ...entry, numbers }, now);
        const row = trx('number_import_parts').where({ import_id: id, part: part.part });
        const remaining = phones.slice(size);
        await (remaining.length === 0 ? row.delete() : row.update({ phones: remaining.join('\n') }));
        const ideal = (size * stepTime) / (performance.now() - started);
        size = Math.round(Math.max(Math.min(ideal, 2 * size, maxBatchSize), minBatchSize));
        return { added, known: numbers.length - added };
      });
      return moved && { ...moved, duration: performance.now() - begun };
    },

    async finish(id) {
      await requireSeen(database);
      await write('number_imports').where({ id }).delete();
    },

    async discard(id) {
      await write.transaction(async (trx) => {
        // Delete the import first. This waits for a transaction that's adding a part, so that the next statement deletes that part, too.
        const deleted = await trx('number_imports').where({ id, committed_at: null }).delete();
        if (deleted > 0) await trx('number_import_parts').where({ import_id: id }).delete();
      });
    },

    async list() {
      const rows = await read('number_imports').orderBy('id').select('id', 'started_at', 'committed_at');
      return rows.map(({ id, started_at, committed_at }) => ({ id, startedAt: started_at, isCommitted: committed_at !== null }));
    },
  };
}

function deletedError(): Problem {
  return new Problem('conflict', 'The import took too long, and a core has deleted it. Run it again.');
}

/** Formats a number and, after a tab, its details as JSON. Most numbers have none. */
function toLine({ phone, ...details }: ImportedNumber): string {
  return Object.keys(details).length === 0 ? phone : `${phone}\t${JSON.stringify(details)}`;
}

function fromLine(line: string): ImportedNumber {
  const [phone = '', details = '{}'] = line.split('\t', 2);
  return { ...JSON.parse(details), phone };
}
