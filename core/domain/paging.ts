import { z } from 'zod';
import { notACursor } from '#contract/console/common.ts';
import { limits } from '#contract/limits.ts';
import { parseJson } from '#contract/text/json.ts';
import { identifierSchema } from '#contract/text/text.ts';
import { instant, type Millis } from './instant.ts';
import { invalidQuery, type Problem } from './problem.ts';

/** A page of items. `nextCursor` is null on the last page. */
export type Page<Item> = { items: Item[]; nextCursor: string | null };

export type Total = { total: number; totalIsMore: boolean };

export function capTotal(count: number): Total {
  return { total: Math.min(count, limits.countedMatches), totalIsMore: count > limits.countedMatches };
}

/** Counts only if the list is longer than this page. @param count counts up to `max` */
export async function withTotal<Item>(
  page: Page<Item>,
  cursor: string | null,
  count: (max: number) => Promise<number>,
): Promise<Page<Item> & Total> {
  const isWhole = cursor === null && page.nextCursor === null;
  return { ...page, ...capTotal(isWhole ? page.items.length : await count(limits.countedMatches + 1)) };
}

/** What the cursors of one list contain: the list's name, and the position of a page's last item. It stays valid if that item changes. */
type Cursors<Position> = {
  write(position: Position): string;
  /** @throws Problem `malformed-request` if the text isn't a cursor of this list */
  read(text: string | null): Position | null;
};

function cursors<Position>(list: string, position: z.ZodType<Position>): Cursors<Position> {
  const schema = z.tuple([z.literal(list), position]);
  return {
    write: (last) => Buffer.from(JSON.stringify([list, last])).toString('base64url'),
    read(text) {
      if (text === null) return null;
      const { data } = schema.safeParse(parseJson(Buffer.from(text, 'base64url').toString()));
      if (!data) throw invalidCursor();
      return data[1];
    },
  };
}

export function invalidCursor(): Problem {
  return invalidQuery({ path: 'cursor', message: notACursor });
}

export function idCursors(list: string): Cursors<string> {
  return cursors(list, identifierSchema);
}

export type TimePosition = { at: Millis; id: string };

const time = z.int().min(0).max(8.64e15).transform(instant);

export function timeCursors(list: string): Cursors<TimePosition> {
  return cursors(list, z.object({ at: time, id: identifierSchema }));
}

export type PhonePosition = { phone: string; id: string };

export const phoneCursors: Cursors<PhonePosition> = cursors(
  'numbers',
  z.object({ phone: z.string().regex(/^\+\d{1,15}$/), id: identifierSchema }),
);

/** @param read reads one row more than a page has, to find out whether there's a next page */
export async function readPage<Item, Position>(
  list: Cursors<Position>,
  { cursor, size }: { cursor: string | null; size: number },
  read: (after: Position | null, rows: number) => Promise<readonly Item[]>,
  getPosition: (last: Item) => Position,
): Promise<Page<Item>> {
  return toPage(list, size, await read(list.read(cursor), size + 1), getPosition);
}

/** The position in a list that's ordered by ID. */
export const toId = ({ id }: { id: string }) => id;

export function toPage<Item, Position>(
  list: Cursors<Position>,
  size: number,
  rows: readonly Item[],
  getPosition: (last: Item) => Position,
): Page<Item> {
  const items = rows.slice(0, size);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > size && last !== undefined ? list.write(getPosition(last)) : null };
}
