import type { Database } from '../../core/storage/engine/database.ts';
import { withoutComments } from '../../core/storage/engine/sql-file.ts';

/** Creates a database that records each prepared statement: how it was prepared, and its first two words. */
export function recordStatements(database: Database): { database: Database; ran: string[] } {
  const ran: string[] = [];
  return {
    ran,
    database: {
      ...database,
      prepare: <Found extends object>(sql: string, mode: 'read' | 'read back' | 'write') => {
        const run = database.prepare<Found>(sql, mode);
        return (...given: Parameters<typeof run>) => {
          ran.push(`${mode} ${withoutComments(sql).split(/\s+/, 2).join(' ')}`);
          return run(...given);
        };
      },
    },
  };
}
