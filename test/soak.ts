// Runs what takes hours, for every night or before a release. Runs everything even if a part fails, and then exits with 1.
import { spawnSync } from 'node:child_process';
import { missingCitus } from './support/citus.ts';

const walk = (database: string) => ['run', 'walk', '--', '--database', database, '--for', '30m'];
const parts = [
  ['run', 'chaos'],
  ...['sqlite', 'postgres', 'citus'].map(walk),
  // Opens every screen in every browser engine.
  ['test', '--', 'test/desktop/engines'],
  ['run', 'mutants'],
];
const missing = missingCitus();
const results = parts.map((args) => {
  const name = `npm ${args.join(' ')}`;
  if (missing && args.includes('citus')) return `skipped: ${name} (Citus is missing: ${missing})`;
  const startedAt = performance.now();
  const { status } = spawnSync('npm', args, { env: { ...process.env, ENGINES: 'all' }, stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
  return `${status === 0 ? 'passed' : 'failed'}: ${name} (${Math.round((performance.now() - startedAt) / 60_000)} min)`;
});
process.stdout.write(`\n${results.join('\n')}\n`);
