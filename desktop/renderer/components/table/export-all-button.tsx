import type { ExportRequest } from '../../../ipc.ts';
import { exportAll, exportedRows } from '../../state/exports.ts';
import { pluralize } from '../../state/format/format.ts';

/** @property noun what to call a row: "call" */
type ExportAllButtonProps = { request: ExportRequest; noun: string };

/** Exports every match of a list to CSV, not only the loaded ones. Shows the progress, and lets the user cancel. */
export function ExportAllButton({ request, noun }: ExportAllButtonProps) {
  if (exportedRows.value === null)
    return (
      <button type="button" onClick={() => void exportAll(request, noun)}>
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
