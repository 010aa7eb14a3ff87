import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Sort } from '../state/sorting.ts';
import { Icon, type IconName } from './icons.tsx';

export type Column<Row, Name extends string> = {
  name: Name;
  label: string;
  /** A width in tables.css. */
  width: 'name' | 'text' | 'short' | 'day' | 'moment' | 'end' | 'state' | 'number';
  cell: (row: Row) => ComponentChildren;
  isSortable?: boolean;
  /** Left out where room is short. */
  isMinor?: boolean;
};

export type Selection = { ids: ReadonlySet<string>; onChange: (ids: ReadonlySet<string>) => void };

type RowAction<Row> = {
  icon: IconName;
  /** Names the button: "Revoke Zapier". */
  label: (row: Row) => string;
  isPossible?: (row: Row) => boolean;
  run: (row: Row) => void;
};

type DataTableProps<Row, Name extends string> = {
  /** For screen readers: "API keys". */
  label: string;
  /** The first column names the row. */
  columns: readonly Column<Row, Name>[];
  rows: readonly Row[];
  idOf: (row: Row) => string;
  nameOf: (row: Row) => string;
  classOf?: (row: Row) => string;
  sort?: Sort<Name>;
  onSort?: (column: Name) => void;
  /** Enter or a click opens the details of a row. */
  onOpen?: (row: Row) => void;
  openId?: string | null;
  /** At the end of each row; Delete runs it, too. */
  action?: RowAction<Row>;
  selection?: Selection;
};

/**
 * A table that is one tab stop (ARIA APG, grid): up and down, or `j` and `k`, move between rows, left and right to what is in a row; Enter
 * opens, Delete runs the row's action, Space selects.
 */
export function DataTable<Row, Name extends string>(props: DataTableProps<Row, Name>) {
  const { label, columns, rows, idOf, selection, action, sort, onSort, onOpen, openId } = props;
  const [active, setActive] = useState<string | null>(null);
  const tabStop = rows.some((row) => idOf(row) === active) ? active : rows[0] && idOf(rows[0]);

  function onKeyDown(event: KeyboardEvent): void {
    const { target, currentTarget } = event;
    if (!(target instanceof HTMLElement) || !(currentTarget instanceof HTMLElement)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rows.find((each) => rowId(idOf(each)) === target.id);
    if ((row && runRowKey(event.key, row, props)) || moveFocus(event.key, target, currentTarget)) event.preventDefault();
  }

  return (
    <table
      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: A table may be a grid (ARIA in HTML).
      role="grid"
      aria-label={label}
      class={selection ? 'stacks picks' : 'stacks'}
      onKeyDown={onKeyDown}
      onFocusIn={({ target }) => {
        const element = target instanceof Element ? target.closest('tbody tr') : null;
        const row = rows.find((each) => rowId(idOf(each)) === element?.id);
        if (!row) return;
        setActive(idOf(row));
        // Open details follow the focus.
        if (element === target && openId && openId !== idOf(row)) onOpen?.(row);
      }}
    >
      <colgroup>
        {selection && <col class="pick" />}
        {columns.map((column) => (
          <col key={column.name} class={`${column.width} ${cellClass(column)}`} />
        ))}
        {action && <col class="act" />}
      </colgroup>
      <thead>
        <tr>
          {selection && (
            <th scope="col">
              <SelectAll rows={rows.map(idOf)} selection={selection} />
            </th>
          )}
          {columns.map((column) => (
            <Head key={column.name} column={column} sort={sort} onSort={onSort} />
          ))}
          {action && (
            <th scope="col">
              <span class="visually-hidden">Action</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <BodyRow key={idOf(row)} {...props} row={row} isTabStop={idOf(row) === tabStop} />
        ))}
      </tbody>
    </table>
  );
}

/** Runs what a key does on a row. @returns whether it does anything */
function runRowKey<Row, Name extends string>(key: string, row: Row, props: DataTableProps<Row, Name>): boolean {
  const { onOpen, action, selection, idOf } = props;
  if (key === 'Enter' && onOpen) onOpen(row);
  else if (key === 'Delete' && action && action.isPossible?.(row) !== false) action.run(row);
  else if (key === ' ' && selection) toggle(selection, idOf(row));
  else return false;
  return true;
}

type HeadProps<Row, Name extends string> = {
  column: Column<Row, Name>;
  sort: Sort<Name> | undefined;
  onSort: ((column: Name) => void) | undefined;
};

function cellClass({ width, isMinor = false }: Pick<Column<never, string>, 'width' | 'isMinor'>): string {
  return [width === 'number' ? 'number' : '', isMinor ? 'minor' : ''].join(' ').trim();
}

function Head<Row, Name extends string>({ column, sort, onSort }: HeadProps<Row, Name>) {
  const { name, label, isSortable = true } = column;
  const className = cellClass(column);
  if (!sort || !onSort || !isSortable) {
    return (
      <th scope="col" class={className}>
        {label}
      </th>
    );
  }
  const isSorted = sort.column === name;
  return (
    <th scope="col" class={className} aria-sort={isSorted ? (sort.isDescending ? 'descending' : 'ascending') : 'none'}>
      <button type="button" tabIndex={-1} onClick={() => onSort(name)}>
        {label}
        {isSorted && <Icon name={sort.isDescending ? 'down' : 'up'} />}
      </button>
    </th>
  );
}

type BodyRowProps<Row, Name extends string> = DataTableProps<Row, Name> & { row: Row; isTabStop: boolean };

function BodyRow<Row, Name extends string>(props: BodyRowProps<Row, Name>) {
  const { columns, row, idOf, nameOf, classOf, onOpen, openId, action, selection, isTabStop } = props;
  const id = idOf(row);
  const isSelected = selection?.ids.has(id) === true;
  return (
    <tr
      id={rowId(id)}
      class={[classOf?.(row) ?? '', id === openId ? 'current' : ''].join(' ').trim() || undefined}
      tabIndex={isTabStop ? 0 : -1}
      aria-selected={selection ? isSelected : undefined}
      onClick={({ target }) => {
        if (onOpen && isPlainClick(target)) onOpen(row);
      }}
    >
      {selection && (
        <td class="pick">
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={`Select ${nameOf(row)}`}
            checked={isSelected}
            onChange={() => toggle(selection, id)}
          />
        </td>
      )}
      {columns.map((column, index) =>
        index === 0 ? (
          <th key={column.name} scope="row">
            {column.cell(row)}
          </th>
        ) : (
          <td key={column.name} class={cellClass(column)} data-label={column.label}>
            {column.cell(row)}
          </td>
        ),
      )}
      {action && (
        <td class="act">
          {action.isPossible?.(row) !== false && (
            <button type="button" class="quiet icon-only" tabIndex={-1} aria-label={action.label(row)} onClick={() => action.run(row)}>
              <Icon name={action.icon} />
            </button>
          )}
        </td>
      )}
    </tr>
  );
}

/** Not on a control, and not the end of selecting text. */
function isPlainClick(target: EventTarget | null): boolean {
  return target instanceof Element && !target.closest('button, input, .pick, .act') && getSelection()?.isCollapsed !== false;
}

function SelectAll({ rows, selection: { ids, onChange } }: { rows: readonly string[]; selection: Selection }) {
  const areAll = rows.length > 0 && rows.every((id) => ids.has(id));
  return (
    <input
      type="checkbox"
      tabIndex={-1}
      aria-label="Select all on this page"
      checked={areAll}
      indeterminate={!areAll && rows.some((id) => ids.has(id))}
      onChange={() => onChange(areAll ? new Set([...ids].filter((id) => !rows.includes(id))) : new Set([...ids, ...rows]))}
    />
  );
}

function toggle({ ids, onChange }: Selection, id: string): void {
  const changed = new Set(ids);
  if (!changed.delete(id)) changed.add(id);
  onChange(changed);
}

const focusable = 'button, input, [data-tip], [data-clip]';
const steps: Readonly<Record<string, number>> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };
const sidesteps: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

/** Moves the focus to another row, or to another part of the row. @returns whether the key does so */
function moveFocus(key: string, from: HTMLElement, table: HTMLElement): boolean {
  const row = from.closest('tr');
  if (!row) return false;
  const rows = [...table.querySelectorAll<HTMLElement>('tr')];
  const partsOf = (of: HTMLElement) => [
    ...(of.tabIndex >= -1 && of.id !== '' ? [of] : []),
    ...[...of.querySelectorAll<HTMLElement>(focusable)].filter(hasSomethingToShow),
  ];
  const step = steps[key];
  const sidestep = sidesteps[key];
  let to: HTMLElement | undefined;
  if (step !== undefined) to = rows[rows.indexOf(row) + step];
  else if (key === 'Home') to = rows[1];
  else if (key === 'End') to = rows.at(-1);
  else if (sidestep !== undefined) to = partsOf(row)[Math.max(0, partsOf(row).indexOf(from) + sidestep)];
  else return false;
  // The row of heads is no stop itself.
  (to?.id === '' && to instanceof HTMLTableRowElement ? partsOf(to)[0] : to)?.focus();
  return true;
}

function hasSomethingToShow(element: HTMLElement): boolean {
  return element.dataset['clip'] === undefined || element.scrollWidth > element.clientWidth;
}

const rowPrefix = 'row-';

function rowId(id: string): string {
  return `${rowPrefix}${id}`;
}

/** Moves the focus to a row once it is rendered, or to the heading if there is none. */
export function focusRow(id: string | null): void {
  requestAnimationFrame(() => {
    const row = id === null ? null : document.getElementById(rowId(id));
    row?.scrollIntoView({ block: 'nearest' });
    (row ?? document.querySelector<HTMLElement>('main h1'))?.focus();
  });
}

/** The row after this one, or before it at the end: it gets the focus when this row goes away. */
export function neighbourOf(id: string): string | null {
  const row = document.getElementById(rowId(id));
  const neighbour = row?.nextElementSibling ?? row?.previousElementSibling;
  return neighbour?.id.slice(rowPrefix.length) ?? null;
}
