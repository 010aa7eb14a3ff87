import { readFileSync } from 'node:fs';
import type { Dialect } from './database.ts';

const texts = new Map<string, string>();

/**
 * Reads the statement `NAME.DIALECT.sql`. In it, `{{part}}` stands for the SQL in `parts.part`.
 *
 * @param near the `import.meta.url` of the file next to it
 */
export function readSql(near: string, name: string, dialect: Dialect, parts: Readonly<Record<string, string>> = {}): string {
  const { href } = new URL(`${name}.${dialect}.sql`, near);
  const text = texts.get(href) ?? readFileSync(new URL(href), 'utf8');
  texts.set(href, text);
  return text.replaceAll(/\{\{(\w+)\}\}/g, (_, part: string) => {
    const sql = parts[part];
    if (sql === undefined) throw new Error(`${name}.${dialect}.sql needs {{${part}}}.`);
    return sql;
  });
}

export function withoutComments(sql: string): string {
  return sql.replaceAll(/\s*--.*$/gm, '').trim();
}
