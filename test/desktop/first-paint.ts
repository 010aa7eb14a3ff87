// Measures how long the console takes from its start to the sign-in form on this machine: `npm run first-paint`, or `npm run first-paint --
// 20` for 20 starts. Each start is a separate process, like that of `npm run desktop`. All use the same profile, which is empty only at the
// first start.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { computeSpread } from '../../scripts/bench/spread.ts';
import { electronFile } from '../../scripts/support/electron-runtime.ts';
import { cleanUp } from '../support/clean-up.ts';
import { freshDirectory } from '../support/databases.ts';
import { buildConsole, consoleArgs, consoleEnvironment } from '../support/electron.ts';
import { type Marks, stages } from './first-paint-marks.ts';

const goalMs = 1_000;
const probe = fileURLToPath(new URL('first-paint-probe.ts', import.meta.url));
const [starts = '10'] = process.argv.slice(2);

/** @returns the milliseconds from the start of the process to each stage */
async function start(userData: string, env: Record<string, string>): Promise<Marks> {
  const from = Date.now();
  const child = spawn(electronFile(), consoleArgs(userData, ['--require', probe]), { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  const line = output.split('\n').find((each) => each.startsWith('{')) ?? '';
  const marks = JSON.parse(line) as Marks;
  return Object.fromEntries(stages.map((stage) => [stage, marks[stage] - from])) as Marks;
}

try {
  await buildConsole();
  const userData = freshDirectory();
  const env = await consoleEnvironment();
  const empty = await start(userData, env);
  const all: Marks[] = [];
  for (let n = 0; n < Number(starts); n++) all.push(await start(userData, env));
  const row = (name: string, first: number, values: number[]) => {
    const { median, min, max } = computeSpread(values);
    return `${name.padEnd(26)} ${[first, median, min, max].map((ms) => String(Math.round(ms)).padStart(9)).join(' ')}\n`;
  };
  process.stdout.write(
    `${'ms from the start to'.padEnd(26)} ${['new', 'median', 'fastest', 'slowest'].map((head) => head.padStart(9)).join(' ')}\n`,
  );
  for (const stage of stages)
    process.stdout.write(
      row(
        stage,
        empty[stage],
        all.map((marks) => marks[stage]),
      ),
    );
  const { median } = computeSpread(all.map((marks) => marks['sign-in form']));
  process.stdout.write(`The goal of ${goalMs} ms is ${median < goalMs ? 'reached' : 'missed'}.\n`);
} finally {
  await cleanUp();
}
