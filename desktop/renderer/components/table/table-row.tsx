import { Component } from 'preact';
import { Icon } from '../icons.tsx';
import { rowId } from './table-focus.ts';
import { cellClass, type DataTableProps, toggle } from './table-model.ts';

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
export class BodyRow<Row, Name extends string> extends Component<BodyRowProps<Row, Name>> {
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
