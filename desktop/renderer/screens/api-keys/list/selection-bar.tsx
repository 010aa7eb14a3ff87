import { pluralize } from '../../../state/format/format.ts';

type SelectionBarProps = { count: number; onRevoke: () => void; onClear: () => void };

/** Shows the actions for the selected keys. */
export function SelectionBar({ count, onRevoke, onClear }: SelectionBarProps) {
  return (
    <div class="selection">
      <span role="status">{pluralize(count, 'key')} selected</span>
      <span class="actions">
        <button type="button" class="quiet" onClick={onClear}>
          Clear
        </button>
        <button type="button" class="warns" onClick={onRevoke}>
          Revoke {pluralize(count, 'key')}…
        </button>
      </span>
    </div>
  );
}
