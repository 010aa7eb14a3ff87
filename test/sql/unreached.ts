import { readFileSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';

const stores = /\/core\/storage\/(calls|keys|directory|audit|protection)\/[^/]+\.ts$/;
/** Matches code that creates a statement or a part of one. */
const makesSql =
  /\b(SELECT|INSERT|UPDATE|DELETE|WHERE)\b|\.(where|select|insert|update|orderBy|limit|join)|\.delete\(\)|\b(trx|read|write)\([a-z']|query[<(]/;

/** Runs a function. @returns the code of the stores that creates SQL but didn't run, with its file and line */
export async function findUnreached(run: () => Promise<unknown>): Promise<string[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  try {
    await run();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return result.filter(({ url }) => stores.test(url)).flatMap(listUnreached);
  } finally {
    await session.post('Profiler.stopPreciseCoverage');
    session.disconnect();
  }
}

function listUnreached({ url, functions }: Profiler.ScriptCoverage): string[] {
  const text = readFileSync(fileURLToPath(url), 'utf8');
  const isReached = new Uint8Array(text.length).fill(1);
  // Omits the range of the whole file, because its code may have run before the coverage started: when it was loaded.
  const ranges = functions.flatMap((one) => one.ranges).filter(({ endOffset, startOffset }) => endOffset - startOffset < text.length);
  const outerFirst = ranges.toSorted((a, b) => b.endOffset - b.startOffset - (a.endOffset - a.startOffset));
  for (const { startOffset, endOffset, count } of outerFirst) isReached.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  const unreached = outerFirst.filter(({ startOffset, endOffset }) => !isReached.subarray(startOffset, endOffset).includes(1));
  return unreached.flatMap(({ startOffset, endOffset }) => {
    const code = text.slice(startOffset, endOffset);
    const line = text.slice(0, startOffset).split('\n').length;
    return makesSql.test(code) ? [`${url.replace(/^.*\/core\//, 'core/')}:${line}: ${code.trim().replace(/\s+/g, ' ')}`] : [];
  });
}
