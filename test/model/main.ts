// Runs the cores next to the model for as long as you like: npm run walk -- --seed 7 --commands 100000 --database postgres --for 10m
import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { cleanUp } from '../support/clean-up.ts';
import { missingCitus } from '../support/postgres-node.ts';
import { hour, minute, second } from './basics.ts';
import { walk } from './walk.ts';

const usage = 'Usage: npm run walk -- [--database sqlite|postgres|citus] [--seed N] [--commands N] [--for 10m] [--only N,N] [--trace]';
/** How many commands a walk with one database has at most. With more, it would have too many calls to look at after each command. */
const longest = 1_000;

function stop(message: string): never {
  process.stderr.write(`${message} ${usage}\n`);
  process.exit(2);
}

const text = { type: 'string' } as const;
const options = { database: text, seed: text, commands: text, for: text, only: text, trace: { type: 'boolean' } } as const;
const { database: kind = 'sqlite', only, ...given } = parseArgs({ options }).values;
const seed = Number(given.seed ?? randomInt(2 ** 31));
const commands = Number(given.commands ?? (given.for === undefined ? 10_000 : 0));
const [, amount, unit = ''] = /^([1-9]\d{0,5})(s|m|h)$/.exec(given.for ?? '0s') ?? [];
if (kind !== 'sqlite' && kind !== 'postgres' && kind !== 'citus') stop('--database must be sqlite, postgres or citus.');
const missing = kind === 'citus' && missingCitus();
if (missing) stop(`Citus is missing: ${missing}.`);
if (!Number.isSafeInteger(seed) || Math.abs(seed) > 2 ** 31) stop('--seed must be a whole number below 2147483648.');
if (!Number.isSafeInteger(commands) || commands < 0 || given.commands === '') stop('--commands must be a whole number.');
if (given.for !== undefined && amount === undefined) stop('--for must be a time such as 90s, 10m or 2h.');
if (only !== undefined && !/^\d*(,\d+)*$/.test(only)) stop('--only must be the numbers that a failed walk printed.');
const walksFor = Number(amount ?? 0) * ({ s: second, m: minute, h: hour }[unit] ?? 0);

// In memory, a walk is several times as fast.
if (existsSync('/dev/shm')) process.env['TMPDIR'] ??= '/dev/shm';
const say = (line: string) => process.stdout.write(`${line}\n`);
process.once('SIGINT', () => cleanUp().finally(() => process.exit(130)));

const startedAt = performance.now();
let steps = 0;
try {
  for (let current = seed; current === seed || steps < commands || performance.now() < startedAt + walksFor; current++) {
    const count = steps < commands ? Math.min(longest, commands - steps) : longest;
    say(`seed ${current}`);
    await walk({ kind, seed: current, commands: count, only: only?.split(',').map(Number), trace: given.trace ? say : undefined });
    steps += count;
  }
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  say(`No difference in ${steps} commands on ${kind}, from seed ${seed} (${seconds} s)`);
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
await cleanUp();
