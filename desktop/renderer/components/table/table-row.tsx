import { Icon } from '../icons.tsx';
import { rowId } from './table-focus.ts';
import { cellClass, type DataTableProps, toggle } from './table-model.ts';

type BodyRowProps<Row, Name extends string> = DataTableProps<Row, Name> & { row: Row; isTabStop: boolean };

export function BodyRow<Row, Name extends string>(props: BodyRowProps<Row, Name>) {
  const { columns, row, getId, getName, getClass, onOpen, openId, getHref, action, selection, isTabStop } = props;
  const id = getId(row);
  const isSelected = selection?.ids.has(id) === true;
  return (
    <tr
      id={rowId(id)}
      class={[getClass?.(row) ?? '', id === openId ? 'current' : '', onOpen ? 'opens' : ''].join(' ').trim() || undefined}
      tabIndex={isTabStop ? 0 : -1}
      aria-selected={selection ? isSelected : undefined}
      onClick={(event) => {
        if (!onOpen || !isPlainClick(event)) return;
        // A plain click opens the row; the link handles other clicks, such as Ctrl-click.
        event.preventDefault();
        onOpen(row);
      }}
    >
      {selection && (
        <td class="pick">
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={`Select ${getName(row)}`}
            checked={isSelected}
            onChange={() => toggle(selection, id)}
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

/** Whether a click is a plain one, and not on a control or at the end of a text selection. */
function isPlainClick({ target, ctrlKey, metaKey, shiftKey }: MouseEvent): boolean {
  if (ctrlKey || metaKey || shiftKey) return false;
  return target instanceof Element && !target.closest('button, input, .pick, .act') && getSelection()?.isCollapsed !== false;
}
