import { useRef, useState } from 'preact/hooks';
import { moveFocus, rowId } from './table-focus.ts';
import { StackedHead, TableHead } from './table-head.tsx';
import { cellClass, type DataTableProps, toggle } from './table-model.ts';
import { BodyRow } from './table-row.tsx';

/**
 * Shows a table that's a single tab stop (ARIA APG, grid). Up and down, or `j` and `k`, move between rows; left and right move within a
 * row; Enter opens, Delete runs the row's action, Space selects.
 */
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
          {selection && <col class="pick" />}
          {columns.map((column) => (
            <col key={column.name} class={`${column.width} ${cellClass(column)}`} />
          ))}
          {action && <col class="act" />}
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
