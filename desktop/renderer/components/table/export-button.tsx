import type { RecordExport } from '#contract/console/activity.ts';
import { announce, warn } from '../../state/announcement.ts';
import { toCsv } from '../../state/format/csv.ts';
import { describeFailure } from '../../state/format/failure-text.ts';
import { pluralize } from '../../state/format/format.ts';
import { listNouns } from '../../state/format/labels.ts';

type ExportButtonProps = {
  /** The file name without its extension. */
  name: RecordExport['list'];
  head: readonly string[];
  rows: () => string[][];
};

/** Exports the listed rows to CSV. */
export function ExportButton({ name, head, rows }: ExportButtonProps) {
  return (
    <button type="button" onClick={() => void saveRows(name, head, rows())}>
      Export CSV
    </button>
  );
}

/** Asks where to save the file, saves it, and records the export in the audit log. */
export async function saveRows(name: RecordExport['list'], head: readonly string[], rows: string[][], file = `${name}.csv`): Promise<void> {
  const saved = await window.callkey.saveFile({ name: file, text: toCsv(head, rows) });
  if (!saved.ok) warn(`Nothing was saved. ${describeFailure(saved.failure)}`);
  if (!saved.ok || saved.value === null) return;
  const recorded = await window.callkey.request('recordExport', { list: name, rows: rows.length });
  (recorded.ok ? announce : warn)(
    `Exported ${pluralize(rows.length, listNouns[name] ?? 'row')}${recorded.ok ? '' : ', but the server couldn’t record the export'}.`,
  );
}
