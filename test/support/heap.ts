import { expect } from 'chai';
import type { Page } from 'playwright-core';

/** Returns a snapshot of the page's heap after garbage collection. Fails unless it contains the canary that the page shows. */
export async function readHeap(page: Page): Promise<string> {
  const devtools = await page.context().newCDPSession(page);
  const chunks: string[] = [];
  devtools.on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => chunks.push(chunk));
  await devtools.send('HeapProfiler.collectGarbage');
  await devtools.send('HeapProfiler.collectGarbage');
  await devtools.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false, captureNumericValue: false });
  const snapshot = chunks.join('');
  expect(snapshot, 'the heap of the page while it shows the canary').to.include('Canary');
  return snapshot;
}
