import type { Sort } from './format.ts';

/** How a value is written in an address. */
type Field<Value> = {
  initial: Value;
  /** @returns undefined if the text isn't valid */
  read(text: string): Value | undefined;
  write(value: Value): string;
};

export function text(): Field<string> {
  return { initial: '', read: (written) => written, write: (value) => value };
}

/** A field for a day: `2026-11-08`, or empty. */
export function day(): Field<string> {
  return { ...text(), read: (written) => (/^\d{4}-\d\d-\d\d$/.test(written) && !Number.isNaN(Date.parse(written)) ? written : undefined) };
}

/** A field that isn't part of the address. */
export function unwritten<Value>(initial: Value): Field<Value> {
  return { initial, read: () => undefined, write: () => '' };
}

/** A field that contains one of several names. @param initial one of the names, or null, which isn't written */
export function oneOf<Name extends string, Initial extends Name | null>(names: readonly Name[], initial: Initial): Field<Name | Initial> {
  return { initial, read: (written) => names.find((name) => name === written), write: (value) => value ?? '' };
}

export function oneOfNumbers(numbers: readonly number[], initial: number): Field<number> {
  return { initial, read: (written) => numbers.find((number) => String(number) === written), write: String };
}

/** A field for a page number, which starts at one in the address. */
export function pageNumber(): Field<number> {
  return {
    initial: 0,
    read: (written) => (/^[1-9]\d{0,5}$/.test(written) ? Number(written) - 1 : undefined),
    write: (value) => String(value + 1),
  };
}

/** A field for a sort order. A minus means descending: `-created`. */
export function sortBy<Column extends string>(columns: readonly Column[], initial: Sort<Column>): Field<Sort<Column>> {
  return {
    initial,
    read(written) {
      const isDescending = written.startsWith('-');
      const column = columns.find((name) => name === (isDescending ? written.slice(1) : written));
      return column && { column, isDescending };
    },
    write: ({ column, isDescending }) => `${isDescending ? '-' : ''}${column}`,
  };
}

type Fields<View> = { readonly [Name in keyof View]: Field<View[Name]> };

/** The fields of a screen's view. @property path the parts of the address before its query; an empty part ends the path */
export type ViewFields<View> = { name: string; path: readonly (keyof View & string)[]; fields: Fields<View>; initial: View };

export function viewFields<View extends object>(
  name: string,
  path: readonly (keyof View & string)[],
  fields: Fields<View>,
): ViewFields<View> {
  const initial = Object.fromEntries(fieldNames(fields).map((field) => [field, fields[field].initial])) as View;
  return { name, path, fields, initial };
}

/** Writes a view as `/c1?search=ada`. Initial values aren't written. */
export function writeView<View extends object>(
  { path, fields, initial }: ViewFields<View>,
  view: View,
): { path: string; query: URLSearchParams } {
  const query = new URLSearchParams();
  for (const name of fieldNames(fields)) {
    const written = fields[name].write(view[name]);
    if (!path.includes(name) && written !== fields[name].write(initial[name])) query.set(name, written);
  }
  const parts = path.map((name) => fields[name].write(view[name]));
  const end = parts.indexOf('');
  const written = (end < 0 ? parts : parts.slice(0, end)).map((part) => `/${encodeURIComponent(part)}`);
  return { path: written.join(''), query };
}

/** Reads a view, the inverse of `writeView`. @returns null if the address has more parts than the view */
export function readView<View extends object>(
  { path, fields, initial }: ViewFields<View>,
  parts: readonly string[],
  query: URLSearchParams,
): View | null {
  if (parts.length > path.length) return null;
  const view = { ...initial };
  for (const name of fieldNames(fields)) {
    const index = path.indexOf(name);
    const written = index < 0 ? query.get(name) : parts[index];
    const value = written === null || written === undefined ? undefined : fields[name].read(written);
    if (value !== undefined) view[name] = value;
  }
  return view;
}

function fieldNames<View extends object>(fields: Fields<View>): (keyof View & string)[] {
  return Object.keys(fields) as (keyof View & string)[];
}
