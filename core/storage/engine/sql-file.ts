import { existsSync, readFileSync } from 'node:fs';
import type { Dialect } from './database.ts';

const texts = new Map<string, string>();

/**
 * Reads the statement `NAME.sql` or, if each database needs its own, `NAME.DIALECT.sql`. In it, `{{part}}` stands for the SQL in
 * `parts.part`, or for one of the {@link dialects}' differences.
 *
 * @param near the `import.meta.url` of the file next to it
 */
export function readSql(near: string, name: string, dialect: Dialect, parts: Readonly<Record<string, string>> = {}): string {
  const shared = new URL(`${name}.sql`, near);
  const url = existsSync(shared) ? shared : new URL(`${name}.${dialect}.sql`, near);
  const text = texts.get(url.href) ?? readFileSync(url, 'utf8');
  texts.set(url.href, text);
  return fill(text, parts);
}

/** How each database writes a statement's one parameter, the rows in it, the rows in its first item, the locks of what's selected, and JSON. */
const dialects: Readonly<Record<Dialect, Readonly<Record<string, string>>>> = {
  sqlite: {
    ...{ given: '?1', rows: 'jsonb_each(?1) AS e', firstRows: `jsonb_each(?1, '$[0]') AS e`, forUpdate: '', skipLocked: '' },
    ...{ jsonArray: 'json_array', jsonGroup: 'json_group_array' },
  },
  postgres: {
    ...{ jsonArray: 'json_build_array', jsonGroup: 'json_agg' },
    given: '$1::jsonb',
    rows: 'jsonb_array_elements($1::jsonb) AS e(value)',
    firstRows: 'jsonb_array_elements($1::jsonb->0) AS e(value)',
    forUpdate: 'FOR UPDATE',
    skipLocked: 'FOR UPDATE SKIP LOCKED',
  },
};

export function toStatement(sql: string, dialect: Dialect): string {
  const text = fill(withoutComments(sql), dialects[dialect]);
  if (text.includes('{{')) throw new Error(`A statement has a part without SQL: ${text}`);
  return text;
}

function fill(sql: string, parts: Readonly<Record<string, string>>): string {
  return sql.replaceAll(/\{\{(\w+)\}\}/g, (unknown, part: string) => parts[part] ?? unknown);
}

export function withoutComments(sql: string): string {
  return sql.replaceAll(/\s*--.*$/gm, '').trim();
}
