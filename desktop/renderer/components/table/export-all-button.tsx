import type { ExportRequest } from '../../../ipc.ts';
import { exportAll, exportedRows } from '../../state/exports.ts';
import { pluralize } from '../../state/format/format.ts';

/** @property noun what a row is: "call" */
type ExportAllButtonProps = { wanted: ExportRequest; noun: string };

/** Saves every match of a list as a file for spreadsheets, not only what's loaded. Shows the progress, and cancels. */
export function ExportAllButton({ wanted, noun }: ExportAllButtonProps) {
  if (exportedRows.value === null)
    return (
      <button type="button" onClick={() => void exportAll(wanted, noun)}>
        Export CSV
      </button>
    );
  return (
    <span class="line">
      <span>{pluralize(exportedRows.value, 'row')} exported so far…</span>
      <button type="button" onClick={() => void window.callkey.cancelExport()}>
        Cancel export
      </button>
    </span>
  );
}
