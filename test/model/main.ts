// Runs the cores next to the model for as long as you like: npm run walk -- --seed 7 --commands 100000 --database postgres --for 10m
import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { cleanUp } from '../support/clean-up.ts';
import { missingCitus } from '../support/postgres-node.ts';
import { hour, minute, second } from './basics.ts';
import { walk } from './walk.ts';
import { stopCluster } from './world.ts';

const usage = 'Usage: npm run walk -- [--database sqlite|postgres|citus] [--seed N] [--commands N] [--for 10m] [--path PATH]';

function stop(message: string): never {
  process.stderr.write(`${message} ${usage}\n`);
  process.exit(2);
}

function readOptions() {
  const options = { database: { type: 'string' }, seed: { type: 'string' }, commands: { type: 'string' } } as const;
  try {
    return parseArgs({ options: { ...options, for: { type: 'string' }, path: { type: 'string' } } }).values;
  } catch (error) {
    return stop(error instanceof Error ? error.message.replace(/\n.*/s, '') : String(error));
  }
}

const { database: kind = 'sqlite', path, ...given } = readOptions();
const seed = Number(given.seed ?? randomInt(2 ** 31));
const commands = Number(given.commands ?? (given.for === undefined ? 10_000 : 0));
const [, amount, unit = ''] = /^([1-9]\d{0,5})(s|m|h)$/.exec(given.for ?? '0s') ?? [];
if (kind !== 'sqlite' && kind !== 'postgres' && kind !== 'citus') stop('--database must be sqlite, postgres or citus.');
const missing = kind === 'citus' && missingCitus();
if (missing) stop(`Citus is missing: ${missing}.`);
if (!Number.isSafeInteger(seed) || Math.abs(seed) > 2 ** 31) stop('--seed must be a whole number below 2147483648.');
if (!Number.isSafeInteger(commands) || commands < 0 || given.commands === '') stop('--commands must be a whole number.');
if (given.for !== undefined && amount === undefined) stop('--for must be a time such as 90s, 10m or 2h.');
if (path !== undefined && !/^\d+(:\d+)*,[\w/+:]*$/.test(path)) stop('--path must be the path that a failed walk printed.');
const walksFor = Number(amount ?? 0) * ({ s: second, m: minute, h: hour }[unit] ?? 0);

// In memory, a walk is several times as fast.
if (existsSync('/dev/shm')) process.env['TMPDIR'] ??= '/dev/shm';
const say = (line: string) => process.stdout.write(`${line}\n`);
let current = seed;
let steps = 0;
const stopping = new AbortController();
process.once('SIGINT', () => {
  say(`\nStopped. Repeat it: npm run walk -- --database ${kind} --seed ${current} --commands 1`);
  process.exitCode = 130;
  stopping.abort();
});

const startedAt = performance.now();
try {
  const { signal } = stopping;
  do {
    const taken = await walk({ kind, seed: current, path, signal });
    if (signal.aborted) break;
    steps += taken;
    say(`seed ${current++}: ${taken} commands`);
  } while (path === undefined && (steps < commands || performance.now() < startedAt + walksFor));
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  if (!signal.aborted) say(`No difference in ${steps} commands on ${kind}, from seed ${seed} (${seconds} s)`);
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
await stopCluster();
await cleanUp();
