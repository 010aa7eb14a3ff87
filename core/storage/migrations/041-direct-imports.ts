import type { Knex } from 'knex';

/** Drops the tables of unfinished imports, because an import adds its numbers directly to the list. */
export async function up(trx: Knex): Promise<void> {
  for (const table of ['number_import_parts', 'number_imports']) await trx.schema.dropTable(table);
}
