// Attacks real processes on both databases, and ends with a table that compares what was acknowledged with the database.
// test/README.md lists the options.
// Skips what needs root or strace if it's missing, and says so. Exits with 1 if a column that must be 0 isn't.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { only: { type: 'string' }, database: { type: 'string' }, quick: { type: 'boolean' } } });
const { status } = spawnSync(process.execPath, ['node_modules/mocha/bin/mocha.js', '--fail-zero', 'test/chaos/*.test.ts'], {
  cwd: fileURLToPath(new URL('../..', import.meta.url)),
  env: { ...process.env, CHAOS: JSON.stringify(values) },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
