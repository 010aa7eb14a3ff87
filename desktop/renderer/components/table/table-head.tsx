import type { Sort } from '../../state/format/sorting.ts';
import { Icon } from '../icons.tsx';
import { type Column, cellClass, type DataTableProps, type Selection } from './table-model.ts';

/** Shows the column names. Sortable columns have buttons. */
export function TableHead<Row, Name extends string>({ columns, rows, getId, selection, action, sort, onSort }: DataTableProps<Row, Name>) {
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
export function StackedHead<Row, Name extends string>({ columns, rows, getId, selection, sort, onSort }: DataTableProps<Row, Name>) {
  const sortable = columns.filter(({ isSortable = true }) => isSortable);
  if (!selection && !onSort) return null;
  return (
    <div class="stacked-head">
      {selection && (
        <span class="line">
          <SelectAll rows={rows.map(getId)} selection={selection} label="Select all listed" /> Select all
        </span>
      )}
      {sort && onSort && (
        <span class="line">
          <span aria-hidden="true">Sort by</span>
          <select
            aria-label="Sort by"
            value={sort.column}
            onChange={({ currentTarget: { value } }) => onSort(sortable.find(({ name }) => name === value)?.name ?? sort.column)}
          >
            {sortable.map(({ name, label }) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
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
