import { signal } from '@preact/signals';
import { Component, type ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { counted } from '#contract/text/count.ts';
import { whisper } from '../state/announcement.ts';
import type { Sort } from '../state/format.ts';
import { Select } from './form.tsx';
import { Icon, type IconName } from './icons.tsx';

export type Column<Row, Name extends string> = {
  name: Name;
  label: string;
  width: 'name' | keyof typeof widths;
  /** Must depend only on the row, but components in it may read signals. */
  cell: (row: Row) => ComponentChildren;
  /** Hides the column unless the page is wide, or at least medium. */
  needs?: 'wide' | 'medium';
};

type Selection = { ids: ReadonlySet<string>; onChange: (ids: ReadonlySet<string>) => void };

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

function toggle({ ids, onChange }: Selection, id: string): void {
  const changed = new Set(ids);
  if (!changed.delete(id)) changed.add(id);
  onChange(changed);
  whisper.value = `Selected: ${changed.size}`;
}

const widths = {
  pick: '2.25rem',
  text: '20%',
  person: '27%',
  short: '8.25rem',
  key: '16%',
  campaign: '16%',
  day: '6.75rem',
  type: '8.25rem',
  moment: '9.75rem',
  end: '11.75rem',
  number: '5.5rem',
  count: '5.75rem',
  act: '3rem',
} as const;

/** A column's width. In pages of a medium width, the style sheet gives some columns another one. */
function Col({ width, class: className = '' }: { width?: 'name' | keyof typeof widths; class?: string }) {
  const style = width === undefined || width === 'name' ? {} : { '--width': widths[width] };
  return <col class={`${width ?? ''} ${className}`} style={style} />;
}

function cellClass({ width, needs }: Pick<Column<never, string>, 'width' | 'needs'>): string {
  return [width === 'number' || width === 'count' ? 'number' : '', needs ? `needs-${needs}` : ''].join(' ').trim();
}

/** Shows a table that's a single tab stop (ARIA APG, grid). Arrows, `j` and `k` move, Enter opens, Delete acts, Space selects. */
export function DataTable<Row, Name extends string>(props: DataTableProps<Row, Name>) {
  const { label, columns, rows, getId, getClass, selection, action, onOpen, openId } = props;
  const table = useRef(props);
  table.current = props;
  const [active, setActive] = useState<string | null>(null);
  const tabStop = rows.some((row) => getId(row) === active) ? active : rows[0] && getId(rows[0]);

  function onKeyDown(event: KeyboardEvent): void {
    const { target, currentTarget } = event;
    if (!(target instanceof HTMLElement) || !(currentTarget instanceof HTMLElement)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rows.find((each) => rowId(getId(each)) === target.id);
    if ((row && runRowKey(event.key, row, props)) || moveFocus(event.key, target, currentTarget)) event.preventDefault();
  }

  return (
    <>
      <StackedHead {...props} />
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: A table may be a grid (ARIA in HTML).
        role="grid"
        aria-label={label}
        class={selection ? 'stacks picks' : 'stacks'}
        onKeyDown={onKeyDown}
        onFocusIn={({ target }) => {
          const element = target instanceof Element ? target.closest('tbody tr') : null;
          const row = rows.find((each) => rowId(getId(each)) === element?.id);
          if (!row) return;
          setActive(getId(row));
          // If details are open, they follow the focus.
          if (element === target && openId && openId !== getId(row)) onOpen?.(row);
        }}
      >
        <colgroup>
          {selection && <Col width="pick" />}
          {columns.map((column) => (
            <Col key={column.name} width={column.width} class={cellClass(column)} />
          ))}
          {action && <Col width="act" />}
        </colgroup>
        <TableHead {...props} />
        <tbody>
          {rows.map((row) => {
            const id = getId(row);
            return (
              <BodyRow
                key={id}
                columns={columns}
                row={row}
                class={[getClass?.(row) ?? '', id === openId ? 'current' : '', onOpen ? 'opens' : ''].join(' ').trim() || undefined}
                isTabStop={id === tabStop}
                isSelected={selection?.ids.has(id)}
                canAct={action ? action.isPossible?.(row) !== false : null}
                table={table}
              />
            );
          })}
        </tbody>
      </table>
    </>
  );
}

/** Handles a key on a row. @returns whether the key did anything */
function runRowKey<Row, Name extends string>(key: string, row: Row, props: DataTableProps<Row, Name>): boolean {
  const { onOpen, action, selection, getId } = props;
  if (key === 'Enter' && onOpen) onOpen(row);
  else if (key === 'Delete' && action && action.isPossible?.(row) !== false) action.run(row);
  else if (key === ' ' && selection) toggle(selection, getId(row));
  else return false;
  return true;
}

function TableHead<Row, Name extends string>({ columns, rows, getId, selection, action, sort, onSort }: DataTableProps<Row, Name>) {
  return (
    <thead>
      <tr>
        {selection && (
          <th scope="col">
            <SelectAll rows={rows.map(getId)} selection={selection} />
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
  );
}

/** Offers sorting and selecting while the rows are stacked without a header. */
function StackedHead<Row, Name extends string>({ columns, rows, getId, selection, sort, onSort }: DataTableProps<Row, Name>) {
  if (!selection && !onSort) return null;
  return (
    <div class="row between stacked-head">
      {selection && (
        <span class="row">
          <SelectAll rows={rows.map(getId)} selection={selection} label="Select all listed" /> Select all
        </span>
      )}
      {sort && onSort && (
        <span class="row">
          <span aria-hidden="true">Sort by</span>
          <Select
            aria-label="Sort by"
            value={sort.column}
            options={columns.map(({ name, label }) => [name, label] as const)}
            onChange={onSort}
          />
          <button
            type="button"
            class="quiet icon-only"
            aria-label={sort.isDescending ? 'Sort ascending' : 'Sort descending'}
            onClick={() => onSort(sort.column)}
          >
            <Icon name={sort.isDescending ? 'down' : 'up'} />
          </button>
        </span>
      )}
    </div>
  );
}

type HeadProps<Row, Name extends string> = {
  column: Column<Row, Name>;
  sort: Sort<Name> | undefined;
  onSort: ((column: Name) => void) | undefined;
};

function Head<Row, Name extends string>({ column, sort, onSort }: HeadProps<Row, Name>) {
  const { name, label } = column;
  const className = cellClass(column);
  if (!sort || !onSort) {
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

type SelectAllProps = { rows: readonly string[]; selection: Selection; label?: string };

function SelectAll({ rows, selection: { ids, onChange }, label = 'Select all on this page' }: SelectAllProps) {
  const areAllSelected = rows.length > 0 && rows.every((id) => ids.has(id));
  return (
    <input
      type="checkbox"
      tabIndex={-1}
      aria-label={label}
      checked={areAllSelected}
      indeterminate={!areAllSelected && rows.some((id) => ids.has(id))}
      onChange={() => onChange(areAllSelected ? new Set([...ids].filter((id) => !rows.includes(id))) : new Set([...ids, ...rows]))}
    />
  );
}

type BodyRowProps<Row, Name extends string> = Pick<DataTableProps<Row, Name>, 'columns'> & {
  row: Row;
  class: string | undefined;
  isTabStop: boolean;
  /** Undefined if rows can't be selected. */
  isSelected: boolean | undefined;
  /** Null if the table's rows have no action. */
  canAct: boolean | null;
  /** The table's properties when it was last rendered. */
  table: { readonly current: DataTableProps<Row, Name> };
};

/** Shows a row. Renders again only if its own properties change, because rendering every row would make typing in a search slow. */
class BodyRow<Row, Name extends string> extends Component<BodyRowProps<Row, Name>> {
  override shouldComponentUpdate(next: BodyRowProps<Row, Name>): boolean {
    return Object.entries(next).some(([name, value]) => value !== Reflect.get(this.props, name));
  }

  render({ columns, row, class: className, isTabStop, isSelected, canAct, table }: BodyRowProps<Row, Name>) {
    const { getId, getName, getHref, action } = table.current;
    const id = getId(row);
    return (
      <tr
        id={rowId(id)}
        class={className}
        tabIndex={isTabStop ? 0 : -1}
        aria-selected={isSelected}
        onClick={(event) => {
          const { onOpen } = table.current;
          if (!onOpen || !isPlainClick(event)) return;
          // A plain click opens the row; the link handles other clicks, such as Ctrl-click.
          event.preventDefault();
          onOpen(row);
        }}
      >
        {isSelected !== undefined && (
          <td class="pick">
            <input
              type="checkbox"
              tabIndex={-1}
              aria-label={`Select ${getName(row)}`}
              checked={isSelected}
              onChange={() => table.current.selection && toggle(table.current.selection, id)}
            />
          </td>
        )}
        {columns.map((column, index) =>
          index === 0 ? (
            <th key={column.name} scope="row">
              {getHref ? (
                <a class="row-link" href={getHref(row)} tabIndex={-1}>
                  {column.cell(row)}
                </a>
              ) : (
                column.cell(row)
              )}
            </th>
          ) : (
            <td key={column.name} class={cellClass(column)} data-label={column.label}>
              {column.cell(row)}
            </td>
          ),
        )}
        {action && canAct !== null && (
          <td class="act">
            {canAct && (
              <button
                type="button"
                class="quiet icon-only"
                tabIndex={-1}
                aria-label={action.label(row)}
                onClick={() => table.current.action?.run(row)}
              >
                <Icon name={action.icon} />
              </button>
            )}
          </td>
        )}
      </tr>
    );
  }
}

/** Whether it's a click without modifier keys that isn't on a control and doesn't end a text selection. */
function isPlainClick({ target, ctrlKey, metaKey, shiftKey }: MouseEvent): boolean {
  if (ctrlKey || metaKey || shiftKey) return false;
  return target instanceof Element && !target.closest('button, input, .pick, .act') && getSelection()?.isCollapsed !== false;
}

/** Shows text on one line, isolated from the direction of the text around it. If it doesn't fit, a tooltip shows it in full. */
export function Clip({ children, class: more = '' }: { children: ComponentChildren; class?: string }) {
  return (
    <bdi class={`clip ${more}`} tabIndex={-1}>
      {children}
    </bdi>
  );
}

/** How many characters at the end of a text stay visible: those that differ if a file has placed the calls. */
const endLength = 8;

/** Does the same as `Clip`, but cuts the text in the middle, because it may differ from others only at its end. */
export function ClipMiddle({ text, class: more = '' }: { text: string; class?: string }) {
  const characters = Array.from(text);
  if (characters.length <= 2 * endLength) return <Clip class={more}>{text}</Clip>;
  return (
    <bdi class={`clip-middle ${more}`}>
      <span class="clip" tabIndex={-1}>
        {characters.slice(0, -endLength).join('')}
      </span>
      {characters.slice(-endLength).join('')}
    </bdi>
  );
}

const focusable = 'button, input, [data-tip], .clip[tabindex]';
const steps: Readonly<Record<string, number>> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };
const sidesteps: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

/** Moves the focus to another row, or to another part of the row. @returns whether the key has this effect */
function moveFocus(key: string, from: HTMLElement, table: HTMLElement): boolean {
  const row = from.closest('tr');
  if (!row) return false;
  const rows = [...table.querySelectorAll<HTMLElement>('tr')];
  const focusableParts = (of: HTMLElement) => [
    ...(of.tabIndex >= -1 && of.id !== '' ? [of] : []),
    ...[...of.querySelectorAll<HTMLElement>(focusable)].filter(hasSomethingToShow),
  ];
  const step = steps[key];
  const sidestep = sidesteps[key];
  let to: HTMLElement | undefined;
  if (step !== undefined) to = rows[rows.indexOf(row) + step];
  else if (key === 'Home') to = rows[1];
  else if (key === 'End') to = rows.at(-1);
  else if (sidestep !== undefined) to = focusableParts(row)[Math.max(0, focusableParts(row).indexOf(from) + sidestep)];
  else return false;
  // The header row can't get the focus itself.
  (to?.id === '' && to instanceof HTMLTableRowElement ? focusableParts(to)[0] : to)?.focus();
  return true;
}

function hasSomethingToShow(element: HTMLElement): boolean {
  return !element.matches('.clip') || element.scrollWidth > element.clientWidth;
}

const rowPrefix = 'row-';

function rowId(id: string): string {
  return `${rowPrefix}${id}`;
}

/** Focuses a row as soon as it's rendered; without one, the heading. In the next frame, the user may already be typing elsewhere. */
export function focusRow(id: string | null): void {
  queueMicrotask(() => {
    const row = id === null ? null : document.getElementById(rowId(id));
    row?.scrollIntoView({ block: 'nearest' });
    (row ?? document.querySelector<HTMLElement>('main h1'))?.focus();
  });
}

/** Returns the row that gets the focus when this row disappears: the next row, or for the last row, the previous one. */
export function adjacentRowId(id: string): string | null {
  const row = document.getElementById(rowId(id));
  const adjacent = row?.nextElementSibling ?? row?.previousElementSibling;
  return adjacent?.id.slice(rowPrefix.length) ?? null;
}

type SelectionBarProps = { count: number; noun: string; verb: string; onClear: () => void; onAct: () => void };

/** Offers an action for the selected rows. */
export function SelectionBar({ count, noun, verb, onClear, onAct }: SelectionBarProps) {
  if (count === 0) return null;
  const rows = counted(count, noun);
  return (
    <div class="row between selection">
      <span role="status">{rows} selected</span>
      <span class="actions">
        <button type="button" class="quiet" onClick={onClear}>
          Clear
        </button>
        <button type="button" class="warns" onClick={onAct}>
          {verb} {rows}…
        </button>
      </span>
    </div>
  );
}

/** While the page is printed, lists show all of their rows. */
export const isPrinting = signal(false);

addEventListener('beforeprint', () => {
  isPrinting.value = true;
});
addEventListener('afterprint', () => {
  isPrinting.value = false;
});

type ShortTableProps = {
  /** The labels of the columns, with their widths. The first column names the row. */
  head: readonly (readonly [label: string, width?: keyof typeof widths])[];
  rows: readonly (readonly ComponentChildren[])[];
};

/** Shows a few facts of each row in a dialog or in the details, under each other if the columns don't have room. */
export function ShortTable({ head, rows }: ShortTableProps) {
  return (
    <div class="short-table">
      <table class="stacks">
        <colgroup>
          {head.map(([label, width]) => (
            <Col key={label} {...(width && { width })} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {head.map(([label]) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, ...cells], row) => (
            <tr key={row}>
              <th scope="row">
                <bdi>{name}</bdi>
              </th>
              {cells.map((cell, column) => (
                <td key={column} data-label={head[column + 1]?.[0]}>
                  <bdi>{cell}</bdi>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
