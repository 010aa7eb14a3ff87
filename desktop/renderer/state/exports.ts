import { effect, signal } from '@preact/signals';
import type { Exported } from '../../csv-export.ts';
import type { ExportRequest } from '../../ipc.ts';
import { announce, warn } from './announcement.ts';
import { describeFailure } from './format/failure-text.ts';
import { pluralize } from './format/format.ts';
import { handleSessionFailure, session } from './session.ts';

/** The number of rows of the running export; null if none is running. It continues while the user looks at other screens. */
export const exportedRows = signal<number | null>(null);

window.callkey.onExportProgress((rows) => {
  if (exportedRows.peek() !== null) exportedRows.value = rows;
});

// After the user has signed out, nothing of their list should be saved.
effect(() => {
  if (session.value === null && exportedRows.peek() !== null) void window.callkey.cancelExport();
});

/** Exports every match of a list as the core sends it. @param noun what to call a row: "call" */
export async function exportAll(request: ExportRequest, noun: string): Promise<void> {
  exportedRows.value = 0;
  const saved = window.callkey.saveExport(request);
  const handled = await handleSessionFailure(saved);
  // After signing out, `handled` only says that the session has ended, but the file may already have been saved.
  const result = await saved.catch(() => handled);
  exportedRows.value = null;
  if (!result.ok) warn(`Nothing was saved. ${describeFailure(result.failure)}`);
  else if (result.value === null) announce('The export was cancelled. Nothing was saved.');
  else (result.value.problem === null ? announce : warn)(describeExport(result.value, noun));
}

function describeExport({ rows, problem }: Exported, noun: string): string {
  if (problem === null) return `Exported ${pluralize(rows, noun)}.`;
  return `The file is incomplete: it ends after ${pluralize(rows, noun)}, and its last line says so. ${problem}`;
}
