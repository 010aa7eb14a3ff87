import { type Signal, signal } from '@preact/signals';
import { isDay } from './days.ts';
import type { Sort } from './format.ts';
import { remember } from './remembered.ts';

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
  return { ...text(), read: (written) => (isDay(written) ? written : undefined) };
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

/** How the filters of a screen are written in its address. */
export type ScreenFilters<Filters extends object> = {
  initial: Filters;
  /** Writes filters as `/c1?search=ada`. Initial values aren't written. */
  write(filters: Filters): { path: string; query: URLSearchParams };
  /** Reads filters, the inverse of `write`. @returns null if the address has more parts than the filters */
  read(parts: readonly string[], query: URLSearchParams): Filters | null;
  /** Returns the filters as the user left them. Each tenancy has its own. */
  current(tenancyKey: string): Signal<Filters>;
};

const defined = new Map<string, ScreenFilters<object>>();

/** Defines what the user can set on a screen. It outlives the screen. @param path the fields before the query; an empty one ends it */
export function defineFilters<Filters extends object>(
  screen: string,
  path: readonly (keyof Filters & string)[],
  fields: { readonly [Name in keyof Filters]: Field<Filters[Name]> },
): ScreenFilters<Filters> {
  const names = Object.keys(fields) as (keyof Filters & string)[];
  const initial = Object.fromEntries(names.map((name) => [name, fields[name].initial])) as Filters;
  const filters: ScreenFilters<Filters> = {
    initial,
    write(set) {
      const query = new URLSearchParams();
      for (const name of names) {
        const written = fields[name].write(set[name]);
        if (!path.includes(name) && written !== fields[name].write(initial[name])) query.set(name, written);
      }
      const parts = path.map((name) => fields[name].write(set[name]));
      const end = parts.indexOf('');
      return { path: (end < 0 ? parts : parts.slice(0, end)).map((part) => `/${encodeURIComponent(part)}`).join(''), query };
    },
    read(parts, query) {
      if (parts.length > path.length) return null;
      const set = { ...initial };
      for (const name of names) {
        const index = path.indexOf(name);
        const written = index < 0 ? query.get(name) : parts[index];
        const value = written === null || written === undefined ? undefined : fields[name].read(written);
        if (value !== undefined) set[name] = value;
      }
      return set;
    },
    current: (tenancyKey) => remember(`${tenancyKey}/filters/${screen}`, () => signal(initial)),
  };
  defined.set(screen, filters);
  return filters;
}

const none = defineFilters<object>('none', [], {});

/** Returns the filters of a screen; empty ones if it hasn't defined any. */
export function filtersOf(screen: string): ScreenFilters<object> {
  return defined.get(screen) ?? none;
}
