import { effect, signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { RecordExport } from '#contract/console/activity.ts';
import { counted } from '#contract/text/count.ts';
import type { ExportRequest, Result } from '../../ipc.ts';
import { announce, warn } from '../state/announcement.ts';
import { describeFailure } from '../state/failure-text.ts';
import { toCsv } from '../state/format.ts';
import { listNouns } from '../state/labels.ts';
import { handleSessionFailure, session } from '../state/session.ts';

async function saveRows(name: RecordExport['list'], head: readonly string[], rows: string[][], file = `${name}.csv`): Promise<void> {
  const saved = await window.callkey.saveFile({ name: file, text: toCsv(head, rows) });
  if (!saved.ok) warn(`Nothing was saved. ${describeFailure(saved.failure)}`);
  if (!saved.ok || saved.value === null) return;
  const recorded = await window.callkey.request('recordExport', { list: name, rows: rows.length });
  (recorded.ok ? announce : warn)(
    `Exported ${counted(rows.length, listNouns[name] ?? 'row')}${recorded.ok ? '' : ', but the server couldn’t record the export'}.`,
  );
}

type ExportRowsButtonProps = {
  /** What's exported, and the name of the file unless it has its own. */
  name: RecordExport['list'];
  file?: string;
  head: readonly string[];
  load: (cursor: string | null) => Promise<Result<{ rows: string[][]; nextCursor: string | null }>>;
};

/** Loads every page of a list that the core doesn't send as a file, and saves them. An incomplete file isn't saved. */
export function ExportRowsButton({ name, file, head, load }: ExportRowsButtonProps) {
  const [loaded, setLoaded] = useState<number | null>(null);
  /** The number of the current run. Cancelling increases it, so that an earlier run, whose page arrives later, stops. */
  const lastRun = useRef(0);
  // Leaving the screen cancels the export, because the next screen may be in another tenancy.
  useEffect(
    () => () => {
      lastRun.current += 1;
    },
    [],
  );
  async function start(): Promise<void> {
    lastRun.current += 1;
    const run = lastRun.current;
    const isCancelled = () => run !== lastRun.current;
    await save(isCancelled).finally(() => {
      if (!isCancelled()) setLoaded(null);
    });
  }
  async function save(isCancelled: () => boolean): Promise<void> {
    const rows: string[][] = [];
    let cursor: string | null = null;
    do {
      setLoaded(rows.length);
      const page: Awaited<ReturnType<typeof load>> = await load(cursor);
      if (isCancelled()) return announce('The export was cancelled. Nothing was saved.');
      if (!page.ok) return warn(`Nothing was saved. ${describeFailure(page.failure)}`);
      rows.push(...page.value.rows);
      cursor = page.value.nextCursor;
    } while (cursor !== null);
    setLoaded(null);
    await saveRows(name, head, rows, file);
  }
  const cancel = () => {
    lastRun.current += 1;
    setLoaded(null);
  };
  return <ExportButton rows={loaded} verb="loaded" onStart={() => void start()} onCancel={cancel} />;
}

/** @property noun what to call a row: "call" */
type ExportAllButtonProps = { request: ExportRequest; noun: string };

/** Exports every match of a list to CSV, not only the loaded ones. Shows the progress, and lets the user cancel. */
export function ExportAllButton({ request, noun }: ExportAllButtonProps) {
  const start = () => void exportAll(request, noun);
  return <ExportButton rows={exportedRows.value} verb="exported" onStart={start} onCancel={() => void window.callkey.cancelExport()} />;
}

/** @property rows how many rows the running export has; null if none is running */
type ExportButtonProps = { rows: number | null; verb: string; onStart: () => void; onCancel: () => void };

function ExportButton({ rows, verb, onStart, onCancel }: ExportButtonProps) {
  if (rows === null)
    return (
      <button type="button" onClick={onStart}>
        Export CSV
      </button>
    );
  return (
    <span class="line">
      <span>{`${counted(rows, 'row')} ${verb} so far…`}</span>
      <button type="button" onClick={onCancel}>
        Cancel export
      </button>
    </span>
  );
}

/** The number of rows of the running export; null if none is running. It continues while the user looks at other screens. */
const exportedRows = signal<number | null>(null);

window.callkey.onExportProgress((rows) => {
  if (exportedRows.peek() !== null) exportedRows.value = rows;
});

// After the user has signed out, nothing of their list should be saved.
effect(() => {
  if (session.value === null && exportedRows.peek() !== null) void window.callkey.cancelExport();
});

async function exportAll(request: ExportRequest, noun: string): Promise<void> {
  exportedRows.value = 0;
  const saved = window.callkey.saveExport(request);
  const handled = await handleSessionFailure(saved);
  // After signing out, `handled` only says that the session has ended, but the file may already have been saved.
  const result = await saved.catch(() => handled);
  exportedRows.value = null;
  if (!result.ok) warn(`Nothing was saved. ${describeFailure(result.failure)}`);
  else if (result.value === null) announce('The export was cancelled. Nothing was saved.');
  else announce(`Exported ${counted(result.value, noun)}.`);
}
