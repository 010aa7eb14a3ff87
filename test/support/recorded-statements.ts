import type { Database } from '../../core/storage/engine/database.ts';

/** Creates a database that records each batch statement: how it was prepared, and its first two words. */
export function recordStatements(database: Database): { database: Database; ran: string[] } {
  const ran: string[] = [];
  const noting =
    <Rows, Result>(how: string, sql: string, run: (rows: Rows) => Promise<Result>) =>
    (rows: Rows) => {
      ran.push(`${how} ${sql.split(/\s+/, 2).join(' ')}`);
      return run(rows);
    };
  return {
    ran,
    database: {
      ...database,
      prepare: (columns, sql, mode) => noting(mode, sql('r'), database.prepare(columns, sql, mode)),
      prepareChange: (columns, sql) => noting('change', sql('r'), database.prepareChange(columns, sql)),
      prepareCounted: (columns, sql, options) => noting('write', sql('r'), database.prepareCounted(columns, sql, options)),
    },
  };
}
