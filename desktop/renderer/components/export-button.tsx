import type { RecordExport } from '#contract/console.ts';
import { announce } from '../state/announcement.ts';
import { toCsv } from '../state/csv.ts';
import { pluralize } from '../state/format.ts';

type ExportButtonProps = {
  /** Of the file, without its end. */
  name: RecordExport['list'];
  head: readonly string[];
  rows: () => string[][];
};

/** Saves what is listed as a file for spreadsheets. */
export function ExportButton({ name, head, rows }: ExportButtonProps) {
  async function save(): Promise<void> {
    const all = rows();
    const isSaved = await window.callkey.saveFile({ name: `${name}.csv`, text: toCsv(head, all) }).catch(() => null);
    if (isSaved === null) announce('Couldn’t save the file. Choose another folder.');
    if (!isSaved) return;
    const recorded = await window.callkey.recordExport({ list: name, rows: all.length });
    announce(`Saved ${pluralize(all.length, 'row')}${recorded.ok ? '' : ', but the server couldn’t record the export'}.`);
  }
  return (
    <button type="button" onClick={() => void save()}>
      Export CSV
    </button>
  );
}
