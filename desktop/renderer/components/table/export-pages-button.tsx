import { useEffect, useRef, useState } from 'preact/hooks';
import type { RecordExport } from '#contract/console/activity.ts';
import type { Result } from '../../../ipc.ts';
import { announce, warn } from '../../state/announcement.ts';
import { describeFailure } from '../../state/format/failure-text.ts';
import { pluralize } from '../../state/format/format.ts';
import { saveRows } from './export-button.tsx';

type ExportPagesButtonProps = {
  name: RecordExport['list'];
  file?: string;
  head: readonly string[];
  load: (cursor: string | null) => Promise<Result<{ rows: string[][]; nextCursor: string | null }>>;
};

/** Loads every page of a list that the core doesn't send as a file, and saves them. An incomplete file isn't saved. */
export function ExportPagesButton({ name, file, head, load }: ExportPagesButtonProps) {
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
  if (loaded === null)
    return (
      <button type="button" onClick={() => void start()}>
        Export CSV
      </button>
    );
  return (
    <span class="line">
      <span>{pluralize(loaded, 'row')} loaded so far…</span>
      <button
        type="button"
        onClick={() => {
          lastRun.current += 1;
          setLoaded(null);
        }}
      >
        Cancel export
      </button>
    </span>
  );
}
