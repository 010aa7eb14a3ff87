import type { ComponentChildren } from 'preact';
import { whisper } from '../../state/announcement.ts';
import type { Sort } from '../../state/format/sorting.ts';
import type { IconName } from '../icons.tsx';

export type Column<Row, Name extends string> = {
  name: Name;
  label: string;
  /** A width from tables.css. */
  width: 'name' | 'text' | 'person' | 'short' | 'key' | 'campaign' | 'day' | 'type' | 'moment' | 'end' | 'state' | 'number' | 'count';
  /** Must depend only on the row, but components in it may read signals. */
  cell: (row: Row) => ComponentChildren;
  isSortable?: boolean;
  /** Hides the column unless the page is wide, or at least medium. */
  needs?: 'wide' | 'medium';
};

export type Selection = { ids: ReadonlySet<string>; onChange: (ids: ReadonlySet<string>) => void };

type RowAction<Row> = {
  icon: IconName;
  /** Names the button: "Revoke Zapier". */
  label: (row: Row) => string;
  isPossible?: (row: Row) => boolean;
  run: (row: Row) => void;
};

export type DataTableProps<Row, Name extends string> = {
  /** For screen readers: "API keys". */
  label: string;
  /** The first column names the row. If this is a new array, all rows render again. */
  columns: readonly Column<Row, Name>[];
  rows: readonly Row[];
  getId: (row: Row) => string;
  getName: (row: Row) => string;
  getClass?: (row: Row) => string;
  sort?: Sort<Name>;
  onSort?: (column: Name) => void;
  /** Enter or a click opens the details of a row. */
  onOpen?: (row: Row) => void;
  openId?: string | null;
  /** The address of a row's details, so that they can be opened in a new tab. */
  getHref?: (row: Row) => string;
  /** The button at the end of each row. The Delete key also triggers it. */
  action?: RowAction<Row>;
  selection?: Selection;
};

export function toggle({ ids, onChange }: Selection, id: string): void {
  const changed = new Set(ids);
  if (!changed.delete(id)) changed.add(id);
  onChange(changed);
  whisper.value = `Selected: ${changed.size}`;
}

export function cellClass({ width, needs }: Pick<Column<never, string>, 'width' | 'needs'>): string {
  return [width === 'number' || width === 'count' ? 'number' : '', needs ? `needs-${needs}` : ''].join(' ').trim();
}
