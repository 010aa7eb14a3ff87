import { signal } from '@preact/signals';
import type { Exported } from '../../csv-export.ts';
import type { ExportRequest } from '../../ipc.ts';
import { announce } from './announcement.ts';
import { describeFailure } from './format/failure-text.ts';
import { pluralize } from './format/format.ts';
import { handleSessionFailure } from './session.ts';

/** The number of rows of the running export; null if none is running. It continues while the user looks at other screens. */
export const exportedRows = signal<number | null>(null);

window.callkey.onExportProgress((rows) => {
  if (exportedRows.peek() !== null) exportedRows.value = rows;
});

/** Exports every match of a list as the core sends it. @param noun what to call a row: "call" */
export async function exportAll(request: ExportRequest, noun: string): Promise<void> {
  exportedRows.value = 0;
  const result = await handleSessionFailure(window.callkey.saveExport(request));
  exportedRows.value = null;
  if (!result.ok) announce(`Nothing was saved. ${describeFailure(result.failure)}`);
  else announce(result.value === null ? 'The export was cancelled. Nothing was saved.' : describeExport(result.value, noun));
}

function describeExport({ rows, problem }: Exported, noun: string): string {
  if (problem === null) return `Exported ${pluralize(rows, noun)}.`;
  return `The file is incomplete: it ends after ${pluralize(rows, noun)}, and its last line says so. ${problem}`;
}
