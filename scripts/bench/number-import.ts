import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DatabaseKind, openStage, type Stage } from './environment.ts';
import { count, databaseLabel, table } from './markdown.ts';
import { freshFolder, run } from './processes.ts';
import { placeAtRate } from './tail.ts';
import type { Say } from './workloads.ts';

const callsPerSecond = 1_000;
const invalidLines = 1_000;
const aloneSeconds = 30;
const stepSeconds = 5;

/**
 * Measures how long placing a call takes: alone, while a do-not-call list with a thousand invalid lines is refused, and while the same list
 * without these lines is imported. @returns Markdown
 */
export async function measureImport(kind: DatabaseKind, lines: number, say: Say): Promise<string> {
  const stage = await openStage(kind);
  const place = (seconds: number) => placeAtRate(stage, callsPerSecond, seconds);
  const measure = async (what: string, task: (() => Promise<unknown>) | null): Promise<string[]> => {
    const times: number[] = [];
    const start = performance.now();
    let seconds = 0;
    const end = task?.().then(() => {
      seconds = (performance.now() - start) / 1_000;
    });
    if (!task) times.push(...(await place(aloneSeconds)));
    while (task && seconds === 0) for (const time of await place(stepSeconds)) times.push(time);
    await end;
    times.sort((a, b) => a - b);
    const cells = [0.5, 0.99, 0.999, 1].map((share) => (times[Math.ceil(times.length * share) - 1] ?? Number.NaN).toFixed(1));
    say(`${kind}: ${what}: ${cells.join(', ')} ms`);
    return [what, databaseLabel(kind), seconds === 0 ? '' : `${seconds.toFixed(0)} s`, ...cells];
  };
  await place(stepSeconds);
  const [invalid, valid] = [invalidLines, 0].map((wrong) => writeList(lines, wrong));
  const rows = [
    await measure('alone', null),
    await measure(`${count(lines)} lines, ${count(invalidLines)} of them invalid`, () =>
      importList(stage, invalid ?? '', { wrong: invalidLines }),
    ),
    await measure(`${count(lines)} lines`, () => importList(stage, valid ?? '', { added: lines })),
  ];
  await stage.close();
  return table(['time to place a call, in ms', 'database', 'import took', 'p50', 'p99', 'p99.9', 'max'], rows);
}

/** Writes a list whose invalid lines are spread over the file. @returns its path */
function writeList(lines: number, invalid: number): string {
  const path = join(freshFolder(), 'numbers.csv');
  const step = invalid === 0 ? Number.POSITIVE_INFINITY : Math.floor(lines / invalid);
  writeFileSync(path, Array.from({ length: lines }, (_, n) => (n % step === step - 1 ? 'nobody' : `+4940${20_000_000 + n}`)).join('\n'));
  return path;
}

async function importList({ database, tenants }: Stage, path: string, expected: { added?: number; wrong?: number }): Promise<void> {
  const { added = 0, wrong = 0 } = expected;
  const admin = fileURLToPath(new URL('../../core/admin.ts', import.meta.url));
  const command = [process.execPath, admin, '--json', 'do-not-call', 'import', path, '--account', tenants.account.id];
  const { stdout, error } = await run('env', [`DATABASE_URL=${database}`, ...command]);
  const result = stdout === '' ? null : JSON.parse(stdout);
  if (result?.added !== added || result?.wrong.length !== wrong) throw new Error(`Unexpected result of the import: ${stdout || error}`);
}
