import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openStage, type Stage } from './environment.ts';
import { count, databaseLabel, table } from './pages.ts';
import { type DatabaseKind, freshFolder, run } from './processes.ts';
import { say, timed } from './spread.ts';
import { percentiles, placeAtRate } from './tail.ts';

const callsPerSecond = 1_000;
const invalidLines = 1_000;
const aloneSeconds = 30;
const stepSeconds = 5;

/**
 * Measures how long placing a call takes: alone, while a do-not-call list with a thousand invalid lines is refused, and while the same list
 * without these lines is imported. @returns Markdown
 */
export async function measureImport(kind: DatabaseKind, lines: number): Promise<string> {
  const stage = await openStage(kind);
  const place = () => placeAtRate(stage, stage.key, callsPerSecond, stepSeconds);
  const measure = async (what: string, took: (ms: number) => string, task: () => Promise<unknown>): Promise<string[]> => {
    let duration = 0;
    const ended = timed(task).then(({ ms }) => {
      duration = ms;
    });
    const times: number[] = [];
    while (duration === 0) times.push(...(await place()));
    await ended;
    const { p50, p99, p999, max } = percentiles(times);
    const cells = [p50, p99, p999, max].map((time) => time.toFixed(1));
    say(`${kind}: ${what}: ${cells.join(', ')} ms`);
    return [what, databaseLabel(kind), took(duration), ...cells];
  };
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(0)} s`;
  // The first calls only warm up the code.
  await place();
  const rows = [
    await measure(
      'alone',
      () => '',
      () => pause(aloneSeconds * 1_000),
    ),
    await measure(`${count(lines)} lines, ${count(invalidLines)} of them invalid`, seconds, prepareImport(stage, lines, invalidLines)),
    await measure(`${count(lines)} lines`, seconds, prepareImport(stage, lines, 0)),
  ];
  await stage.close();
  return table(['time to place a call, in ms', 'database', 'import took', 'p50', 'p99', 'p99.9', 'max'], rows);
}

/** Writes a list whose invalid lines are spread over the file. @returns a function that imports it, and checks the result */
function prepareImport({ database, tenants }: Stage, lines: number, invalid: number): () => Promise<void> {
  const path = join(freshFolder(), 'numbers.csv');
  const step = Math.floor(lines / invalid);
  writeFileSync(path, Array.from({ length: lines }, (_, n) => (n % step === step - 1 ? 'nobody' : `+4940${20_000_000 + n}`)).join('\n'));
  const admin = fileURLToPath(new URL('../../core/admin.ts', import.meta.url));
  const command = [admin, '--json', 'do-not-call', 'import', path, '--account', tenants.account.id];
  return async () => {
    // The command fails if a line is invalid, but prints the same fields.
    const { stdout } = await run(process.execPath, command, { ...process.env, DATABASE_URL: database }).catch((failed) => failed);
    const { added, wrong } = JSON.parse(stdout || '{}');
    if (added !== (invalid === 0 ? lines : 0) || wrong?.length !== invalid) throw new Error(`Unexpected result of the import: ${stdout}`);
  };
}
